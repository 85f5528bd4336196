-- One row a number of calls: how many turns that began in [$begin, $end) made that many (a turn without its
-- end counts with what was seen of it).
SELECT coalesce(t.calls, t.least_calls) AS calls, count(*) AS turns
FROM turns AS t
WHERE coalesce(t.calls, t.least_calls) > 0 AND ($begin::BIGINT IS NULL OR (t.started_at >= $begin AND t.started_at < $end))
GROUP BY ALL ORDER BY 1;
