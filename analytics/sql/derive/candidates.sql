-- grain: one row a turn and candidate policy; `policy_texts` holds the hash of each text.
SELECT turn_id, policy_hash, min(nullif(halt_call, -1)) AS halt_call
FROM (SELECT turn_id, unnest(candidates) AS text, unnest(candidates_halt_call) AS halt_call FROM ended)
JOIN policy_texts USING (text)
GROUP BY turn_id, policy_hash
