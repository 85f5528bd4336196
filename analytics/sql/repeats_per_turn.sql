-- One row a largest repeat: how many turns with a call that began in [$begin, $end) made their most repeated one that
-- often.
WITH seen AS (
    SELECT turn_id, max(times) AS times
    FROM (SELECT turn_id, epoch, key, count(*) AS times FROM calls WHERE key IS NOT NULL GROUP BY ALL)
    GROUP BY turn_id
)
SELECT coalesce(t.max_repeat, s.times) AS max_repeat, count(*) AS turns
FROM turns AS t LEFT JOIN seen AS s USING (turn_id)
WHERE coalesce(t.max_repeat, s.times) > 0 AND ($begin::BIGINT IS NULL OR (t.started_at >= $begin AND t.started_at < $end))
GROUP BY ALL ORDER BY 1;
