-- One row an ISO week and cluster: turns that began in it, those past $soft_cap, those with a (would-be) halt.
SELECT strftime(make_timestamp_ns(t.started_at), '%G-W%V') AS week,
    coalesce(t.cluster_id, t.session_id, t.conversation_id, t.turn_id) AS cluster,
    count(*) AS turns,
    count(*) FILTER (greatest(coalesce(t.calls, 0), t.least_calls) > $soft_cap) AS long,
    count(h.turn_id) AS halted
FROM turns AS t LEFT JOIN (SELECT DISTINCT turn_id FROM loop_events) AS h USING (turn_id)
WHERE greatest(coalesce(t.calls, 0), t.least_calls) > 0 AND t.started_at IS NOT NULL AND ($begin::BIGINT IS NULL OR (t.started_at >= $begin AND t.started_at < $end))
GROUP BY ALL ORDER BY ALL;
