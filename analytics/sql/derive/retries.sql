-- grain: one row a retry, numbered by the call it came after; the epoch is the one that it began.
SELECT
    turn_id,
    row_number() OVER (PARTITION BY turn_id ORDER BY at_call, chunk_index, place) AS epoch,
    at_call,
    total
FROM (
    SELECT
        turn_id, chunk_index,
        unnest(retry_at) AS at_call,
        unnest(retry_total) AS total,
        generate_subscripts(retry_at, 1) AS place
    FROM chunks
)
WHERE at_call IS NOT NULL AND total IS NOT NULL
