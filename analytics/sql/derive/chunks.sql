-- grain: one row a chunk of the turns in `batch`; a log's copy wins over a span's.
SELECT * EXCLUDE (place)
FROM (
    SELECT *, row_number() OVER (PARTITION BY turn_id, chunk_index ORDER BY source, event_id) AS place
    FROM raw_chunks SEMI JOIN batch USING (turn_id)
)
WHERE place = 1 AND chunk_first_call >= 1 AND chunk_index >= 0
