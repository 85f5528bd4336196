-- One row: what was started, ended, loaded and rejected, of the turns that began in [$begin, $end).
SELECT
    count(*) FILTER (has_started) AS turns_started,
    count(*) FILTER (has_ended) AS turns_ended,
    count(*) AS turns,
    coalesce(sum(least_calls), 0)::BIGINT AS calls,
    (SELECT count(*) FROM rejects) AS rejects
FROM turns AS t
WHERE ($begin::BIGINT IS NULL OR (t.started_at >= $begin AND t.started_at < $end));
