-- One row a largest repeat: in how many turns the most repeated call was made that often.
WITH seen AS (
    SELECT turn_id, max(times) AS times
    FROM (SELECT turn_id, epoch, key, count(*) AS times FROM calls WHERE key IS NOT NULL GROUP BY ALL)
    GROUP BY turn_id
)
SELECT coalesce(t.max_repeat, s.times) AS max_repeat, count(*) AS turns
FROM turns AS t LEFT JOIN seen AS s USING (turn_id)
WHERE coalesce(t.max_repeat, s.times) IS NOT NULL GROUP BY ALL ORDER BY 1;
