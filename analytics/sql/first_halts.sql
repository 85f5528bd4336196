-- One row a threshold, mode and enforcement: turns by their first (would-be) halt, and what labels say of them.
WITH first AS (
    SELECT turn_id, threshold, mode, enforced
    FROM loop_events
    QUALIFY row_number() OVER (PARTITION BY turn_id ORDER BY call_number, "at", event_id) = 1
)
SELECT
    threshold, coalesce(mode, 'unknown') AS mode, enforced,
    count(*) AS turns,
    count(*) FILTER (stuck) AS labelled_stuck,
    count(*) FILTER (NOT stuck) AS labelled_not_stuck,
    count(*) FILTER (stuck IS NULL) AS unlabelled
FROM first LEFT JOIN truth USING (turn_id)
GROUP BY ALL ORDER BY turns DESC, threshold, mode, enforced;
