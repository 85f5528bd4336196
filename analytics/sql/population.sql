-- One row a turn that asked for at least one call, in the order of turn_id: what verdicts need of it.
-- $as_of is nanoseconds since 1970: a turn without an end is abandoned 48 hours after its start, open before.
WITH RECURSIVE link AS (
    SELECT turn_id, resumed_from AS root, 1 AS depth FROM turns WHERE resumed_from IS NOT NULL
    UNION
    SELECT l.turn_id, t.resumed_from, l.depth + 1
    FROM link AS l JOIN turns AS t ON t.turn_id = l.root
    WHERE t.resumed_from IS NOT NULL AND l.depth < 1000  -- a chain that bites its tail ends here
), chain AS (
    SELECT turn_id, arg_max(root, depth) AS root FROM link GROUP BY turn_id
), counted AS (  -- where no guard counted
    SELECT turn_id, max(times) AS times FROM (
        SELECT turn_id, epoch, key, count(*) AS times
        FROM calls SEMI JOIN (SELECT turn_id FROM turns WHERE max_repeat IS NULL) USING (turn_id)
        WHERE key IS NOT NULL GROUP BY ALL
    ) GROUP BY turn_id
)
SELECT
    t.turn_id,
    c.root AS resumes,  -- the first turn of a resumed chain, NULL for all others
    dense_rank() OVER (ORDER BY coalesce(t.cluster_id, t.session_id, t.conversation_id, t.turn_id)) - 1 AS cluster,
    CASE WHEN t.cluster_id IS NOT NULL THEN 'user'
         WHEN t.session_id IS NOT NULL OR t.conversation_id IS NOT NULL THEN 'session'
         ELSE 'turn' END AS cluster_kind,
    coalesce(t.agent, '') AS agent,
    coalesce(t.model, '') AS model,
    coalesce(t.guard_version, '') AS guard_version,
    CASE WHEN p.kind = 'disabled' THEN '' ELSE coalesce(t.policy_hash, '') END AS policy_hash,
    coalesce(t.mode, '') AS mode,
    t.dialect,
    t.grade,
    CASE WHEN p.kind = 'hard' THEN 'explicit cap'
         WHEN t.parent_id IS NOT NULL THEN 'sub-agent'
         WHEN t.extended THEN 'extended'
         WHEN NOT t.has_ended AND t.started_at + 48 * 3600 * 1000000000::BIGINT > $as_of THEN 'still open'
         WHEN t.dialect = 'turncap' AND t.policy_hash IS NULL THEN 'policy unknown'
         ELSE 'default' END AS stratum,
    greatest(coalesce(t.calls, 0), t.least_calls) AS calls,
    coalesce(t.max_repeat, r.times) AS max_repeat,
    t.has_ended AS ended,
    t.length_limited,
    t.started_at,
    -- Only an enforced halt hides what the turn would have done.
    t.halted_call IS NOT NULL AND NOT t.extended AS cut_short,
    t.would_halt_call,
    coalesce(t.explored, FALSE) AS explored,
    coalesce(t.holdout_rate, 0) AS holdout_rate,
    CASE WHEN l.stuck THEN 1 WHEN NOT l.stuck THEN 0 ELSE -1 END::TINYINT AS truth,
    coalesce(l.kind, '') AS kind,
    -- The task's own outcome: 1 it succeeded, 0 it did not, -1 unknown.
    CASE WHEN l.productive THEN 1 WHEN NOT l.productive THEN 0 ELSE -1 END::TINYINT AS success
FROM turns AS t
LEFT JOIN policies AS p USING (policy_hash)
LEFT JOIN truth AS l USING (turn_id)
LEFT JOIN chain AS c USING (turn_id)
LEFT JOIN counted AS r USING (turn_id)
WHERE greatest(coalesce(t.calls, 0), t.least_calls) > 0
ORDER BY t.turn_id;
