-- grain: one row a chunk of the turns in `batch`; a log's copy wins over a span's.
-- `settled_before` counts what earlier chunks say settled; `clashing` marks turns in which two chunks tell
-- of one call, which no guard does. All is found from numbers; the lists are fetched once, at the end.
WITH slim AS (
    SELECT
        c.rowid AS id, b.place, chunk_index, chunk_first_call AS first_call, source, event_id,
        coalesce(len(calls_key), 0) AS told, coalesce(len(settled_call), 0) AS settling
    FROM raw_chunks c JOIN batch b USING (turn_id)
    WHERE chunk_first_call BETWEEN 1 AND 9007199254740992 AND chunk_index >= 0  -- 2^53: no count is larger
),
single AS (
    SELECT * FROM slim
    QUALIFY row_number() OVER (PARTITION BY place, chunk_index ORDER BY source, event_id) = 1
),
followed AS (
    SELECT
        *,
        CAST(sum(settling) OVER before AS BIGINT) - settling AS settled_before,
        first_call <= max(first_call + told - 1) OVER (
            PARTITION BY place ORDER BY chunk_index ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS clash
    FROM single
    WINDOW before AS (PARTITION BY place ORDER BY chunk_index)
)
SELECT c.*, f.place, f.settled_before, f.clashing
FROM raw_chunks c
JOIN (SELECT *, coalesce(bool_or(clash) OVER (PARTITION BY place), false) AS clashing FROM followed) f
    ON c.rowid = f.id
