-- grain: one row a turn of `batch`.
WITH chunked AS (
    SELECT
        turn_id,
        count(*) AS chunks_seen,
        max(chunk_first_call + len(calls_key) - 1) AS last_call,
        sum(coalesce(len(settled_call), 0)) AS settled,
        min(source) AS source,
        arg_min(guard_id, chunk_index) AS guard_id,
        arg_min(seq, chunk_index) AS seq,
        arg_min(schema_version, chunk_index) AS schema_version,
        arg_min(guard_version, chunk_index) AS guard_version
    FROM chunks
    GROUP BY turn_id
),
halts AS (
    SELECT
        turn_id,
        arg_min(struct_pack(call := call_number, threshold := threshold), (call_number, event_id))
            FILTER (enforced) AS halted,
        arg_min(struct_pack(call := call_number, threshold := threshold), (call_number, event_id)) AS would_halt,
        bool_or(explored) AS explored,
        arg_min(holdout_rate, (call_number, event_id)) AS holdout_rate,
        arg_min(mode, (call_number, event_id)) AS mode,
        max(call_number) AS last_call
    FROM loop_events SEMI JOIN batch USING (turn_id)
    GROUP BY turn_id
),
detected AS (
    SELECT
        turn_id, min(source) AS source, min(guard_id) AS guard_id, min(seq) AS seq,
        min(schema_version) AS schema_version, min(guard_version) AS guard_version,
        min(policy_hash) AS policy_hash, min(gen_ai_conversation_id) AS conversation_id,
        min(gen_ai_agent_name) AS agent, min(gen_ai_request_model) AS model
    FROM raw_detected SEMI JOIN batch USING (turn_id)
    GROUP BY turn_id
),
other AS (
    SELECT
        turn_id, min(source) AS source, min(guard_id) AS guard_id, min(seq) AS seq,
        min(schema_version) AS schema_version, min(guard_version) AS guard_version,
        bool_or(extended) AS extended, bool_or(NOT labelled) AS of_the_turn
    FROM (
        SELECT turn_id, source, guard_id, seq, schema_version, guard_version, true AS extended, false AS labelled
        FROM raw_extended SEMI JOIN batch USING (turn_id)
        UNION ALL
        SELECT turn_id, source, guard_id, seq, schema_version, guard_version, false, false
        FROM raw_crossed SEMI JOIN batch USING (turn_id)
        UNION ALL
        SELECT turn_id, NULL, guard_id, seq, schema_version, guard_version, false, true
        FROM raw_labelled SEMI JOIN batch USING (turn_id)
    )
    GROUP BY turn_id
)
SELECT
    b.turn_id,
    coalesce(s.guard_id, e.guard_id, c.guard_id, d.guard_id, o.guard_id) AS guard_id,
    coalesce(s.seq, e.seq, c.seq, d.seq, o.seq) AS seq,
    s.cluster_id,
    coalesce(s.conversation_id, e.conversation_id, d.conversation_id) AS conversation_id,
    s.parent_id,
    s.resumed_from,
    s.continues,
    coalesce(s.agent, e.agent, d.agent) AS agent,
    coalesce(s.model, e.model, d.model) AS model,
    coalesce(s.mode, h.mode) AS mode,
    coalesce(s.policy_hash, d.policy_hash) AS policy_hash,
    coalesce(s.guard_version, e.guard_version, c.guard_version, d.guard_version, o.guard_version) AS guard_version,
    coalesce(s.schema_version, e.schema_version, c.schema_version, d.schema_version, o.schema_version) AS schema_version,
    'turncap' AS dialect,
    CASE
        WHEN least(s.source, e.source, c.source, d.source, o.source) <> 'log' THEN 'spans-only'
        WHEN coalesce(e.calls, c.last_call, 0) > 0 AND coalesce(e.settled, c.settled) = 0 THEN 'no-results'
        ELSE 'exact'
    END AS grade,
    coalesce(s.sample = 'length-limited', false) AS length_limited,
    s.sample,
    coalesce(
        s."at", TRY_CAST(CAST(e."at" AS HUGEINT) - TRY_CAST(e.duration_ms * 1000000 AS BIGINT) AS BIGINT)
    ) AS started_at,
    e."at" AS ended_at,
    s.turn_id IS NOT NULL AS has_started,
    e.turn_id IS NOT NULL AS has_ended,
    e.outcome,
    l.task_outcome,
    e.calls,
    e.total,
    e.refused,
    e.ran,
    e.settled,
    e.errors,
    e.distinct_keys,
    e.max_repeat,
    e.name_streak_max,
    h.halted.call AS halted_call,
    h.halted.threshold AS threshold,
    h.would_halt.call AS would_halt_call,
    h.would_halt.threshold AS would_halt_threshold,
    h.explored,
    coalesce(s.holdout_rate, h.holdout_rate) AS holdout_rate,
    coalesce(o.extended, false) AS extended,
    e.batches,
    e.retries,
    e.keys_forgotten,
    e.chunks_sent,
    coalesce(c.chunks_seen, 0) AS chunks_seen,
    greatest(0, e.calls, c.last_call, h.last_call) AS least_calls,
    e.duration_ms
FROM batch b
LEFT JOIN started s USING (turn_id)
LEFT JOIN ended e USING (turn_id)
LEFT JOIN chunked c USING (turn_id)
LEFT JOIN halts h USING (turn_id)
LEFT JOIN detected d USING (turn_id)
LEFT JOIN other o USING (turn_id)
LEFT JOIN (FROM truth SEMI JOIN batch USING (turn_id)) l USING (turn_id)
WHERE s.turn_id IS NOT NULL OR e.turn_id IS NOT NULL OR c.turn_id IS NOT NULL OR d.turn_id IS NOT NULL OR o.of_the_turn
