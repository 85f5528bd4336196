-- grain: one row a numbered call that a chunk told of.
-- A chunk's new tools are those it used first, so the largest index in it is that of its last new name:
-- names are found without the chunks before, which may be lost.
WITH told AS (
    SELECT
        place,
        turn_id,
        chunk_first_call + generate_subscripts(calls_key, 1) - 1 AS n,
        unnest(calls_key) AS key,
        unnest(calls_tool) AS tool_index,
        unnest(calls_mutating) AS mutating,
        unnest(calls_offset_ms) AS offset_ms,
        unnest(calls_batch) AS batch,
        chunk_index,
        clashing
    FROM chunks
),
numbered AS (
    SELECT * FROM told WHERE n IS NOT NULL AND NOT clashing
    UNION ALL
    SELECT * FROM told WHERE n IS NOT NULL AND clashing
    QUALIFY row_number() OVER (PARTITION BY place, n ORDER BY chunk_index) = 1
),
tools AS (
    SELECT place, tool_index, arg_min(tool, chunk_index) AS tool, arg_min(tool_class, chunk_index) AS tool_class
    FROM (
        SELECT
            place,
            chunk_index,
            list_max(calls_tool) - len(tools) + generate_subscripts(tools, 1) AS tool_index,
            unnest(tools) AS tool,
            unnest(tools_class) AS tool_class
        FROM chunks
        WHERE len(tools) > 0 AND list_max(calls_tool) BETWEEN 0 AND 9007199254740992
    )
    GROUP BY place, tool_index
),
settled AS (
    SELECT
        place,
        n,
        min(settled_order) AS settled_order,
        arg_min(result, settled_order) AS result,
        arg_min(error, settled_order) AS error,
        arg_min(settled_after, settled_order) AS settled_after
    FROM (
        SELECT
            place,
            unnest(settled_call) AS n,
            unnest(settled_result) AS result,
            unnest(settled_error) AS error,
            unnest(settled_after) AS settled_after,
            settled_before + generate_subscripts(settled_call, 1) - 1 AS settled_order
        FROM chunks
    )
    WHERE settled_order IS NOT NULL
    GROUP BY place, n
),
halting AS (
    SELECT DISTINCT c.place, coalesce(c.batch, -c.n) AS causing
    FROM loop_events e SEMI JOIN batch USING (turn_id)
    JOIN numbered c ON c.turn_id = e.turn_id AND c.n = e.call_number
    WHERE e.enforced
),
epochs AS (
    SELECT c.place, c.n, max(r.epoch) AS epoch
    FROM numbered c JOIN (FROM retries SEMI JOIN batch USING (turn_id)) r
        ON r.turn_id = c.turn_id AND r.at_call < c.n
    GROUP BY ALL
)
SELECT
    c.turn_id,
    c.n,
    coalesce(e.epoch, 0) AS epoch,
    nullif(c.batch, -1) AS batch,
    nullif(c.key, -1) AS key,
    nullif(s.result, -1) AS result,
    t.tool,
    t.tool_class,
    CASE c.mutating WHEN 1 THEN true WHEN 0 THEN false END AS mutating,
    CASE s.error WHEN 1 THEN true WHEN 0 THEN false END AS error,
    nullif(c.offset_ms, -1) AS offset_ms,
    h.causing IS NOT NULL AS refused,
    s.settled_after,
    s.settled_order
FROM numbered c
LEFT JOIN tools t USING (place, tool_index)
LEFT JOIN settled s USING (place, n)
LEFT JOIN epochs e USING (place, n)
LEFT JOIN halting h ON h.place = c.place AND h.causing = coalesce(c.batch, -c.n)
