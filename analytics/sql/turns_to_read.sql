-- One row a turn with at least one call, in the order of turn_id: whether a judge says that it was stuck.
SELECT turn_id, coalesce(arg_max(l.stuck, coalesce(l.labelled_at, 0)) FILTER (l."by" = 'judge'), FALSE) AS judged_stuck
FROM turns AS t LEFT JOIN labels AS l USING (turn_id)
WHERE greatest(coalesce(t.calls, 0), t.least_calls) > 0
GROUP BY turn_id ORDER BY turn_id;
