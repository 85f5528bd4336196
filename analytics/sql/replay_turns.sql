-- One row a turn with at least one call: what replay needs to know of it besides its calls; -1 is unknown.
WITH seen AS (
    SELECT turn_id, count(*) AS rows, count(DISTINCT key) AS keys, count(key) AS keyed, max(n) AS last
    FROM calls GROUP BY turn_id
),
rolled_back AS (SELECT turn_id, count(*) AS retries FROM retries GROUP BY turn_id)
SELECT t.turn_id,
    greatest(coalesce(t.calls, t.least_calls), coalesce(s.last, 0)) AS calls,
    coalesce(t.outcome = 'halted', FALSE) OR (t.halted_call IS NOT NULL AND NOT t.extended)
        OR (t.guard_id IS NOT NULL AND NOT t.has_ended) AS cut_short,
    t.guard_id IS NOT NULL AND t.has_ended AS has_milestones,
    CASE t.grade WHEN 'names-only' THEN 2 WHEN 'no-results' THEN 1 ELSE 0 END AS lacking,
    -- 1 where an open turn with lost calls may have had one
    greatest(
        coalesce(t.retries, 0), coalesce(r.retries, 0),
        (t.guard_id IS NOT NULL AND NOT t.has_ended AND coalesce(s.rows, 0) < t.least_calls)::BIGINT
    ) AS retries,
    coalesce(t.keys_forgotten, 0) AS keys_forgotten,
    coalesce(t.max_repeat, -1) AS max_repeat,
    coalesce(t.distinct_keys, -1) AS distinct_keys,
    coalesce(t.batches, -1) AS batches,
    coalesce(t.chunks_seen < t.chunks_sent, FALSE) AS chunks_lost,
    coalesce(s.rows, 0) AS rows,
    coalesce(s.keys, 0) AS keys,
    coalesce(s.rows = s.keyed, FALSE) AS all_keyed,
    CASE WHEN truth.stuck THEN 2 WHEN NOT truth.stuck THEN 1 ELSE 0 END AS label,
    truth.kind
FROM turns AS t LEFT JOIN seen AS s USING (turn_id) LEFT JOIN rolled_back AS r USING (turn_id)
LEFT JOIN truth USING (turn_id)
WHERE greatest(coalesce(t.calls, t.least_calls), coalesce(s.last, 0)) > 0
ORDER BY t.turn_id;
