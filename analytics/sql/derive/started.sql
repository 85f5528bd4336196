-- grain: one row a turn of `batch` whose start was told; a log's attribute wins over a span's.
SELECT
    turn_id,
    arg_min("at", told) AS "at",
    arg_min(guard_id, told) AS guard_id,
    arg_min(seq, told) AS seq,
    arg_min(schema_version, told) AS schema_version,
    arg_min(guard_version, told) AS guard_version,
    arg_min(mode, told) AS mode,
    arg_min(policy_hash, told) AS policy_hash,
    arg_min(holdout_rate, told) AS holdout_rate,
    arg_min(cluster_id, told) AS cluster_id,
    arg_min(turn_parent_id, told) AS parent_id,
    arg_min(turn_resumed_from, told) AS resumed_from,
    arg_min(turn_continues, told) AS continues,
    arg_min(sample, told) AS sample,
    arg_min(gen_ai_conversation_id, told) AS conversation_id,
    arg_min(gen_ai_agent_name, told) AS agent,
    arg_min(gen_ai_request_model, told) AS model,
    min(source) AS source
FROM (SELECT *, source || event_id AS told FROM raw_started SEMI JOIN batch USING (turn_id))
GROUP BY turn_id
