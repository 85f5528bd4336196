-- One row a threshold, mode and enforcement: turns that began in [$begin, $end) by their first (would-be) halt,
-- and what labels say of them.
WITH first AS (
    SELECT turn_id, threshold, mode, enforced
    FROM loop_events
    QUALIFY row_number() OVER (PARTITION BY turn_id ORDER BY call_number, "at", event_id) = 1
)
SELECT
    f.threshold, coalesce(f.mode, 'unknown') AS mode, f.enforced,
    count(*) AS turns,
    count(*) FILTER (l.stuck) AS labelled_stuck,
    count(*) FILTER (NOT l.stuck) AS labelled_not_stuck,
    count(*) FILTER (l.stuck IS NULL) AS unlabelled
FROM first AS f LEFT JOIN turns AS t USING (turn_id) LEFT JOIN truth AS l USING (turn_id)
WHERE ($begin::BIGINT IS NULL OR (t.started_at >= $begin AND t.started_at < $end))
GROUP BY ALL ORDER BY turns DESC, threshold, mode, enforced;
