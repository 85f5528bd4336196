-- One row a policy that ran, with its turns; the most used first.
SELECT p.policy_hash, p.kind, p.signal, p.soft_cap, p.stuck_at, p.backstop, p.hard_cap, count(*) AS turns
FROM turns AS t JOIN policies AS p USING (policy_hash)
GROUP BY ALL ORDER BY turns DESC, policy_hash;
