-- One row a policy that ran on turns that began in [$begin, $end), the most used first.
SELECT p.policy_hash, p.kind, p.signal, p.soft_cap, p.stuck_at, p.backstop, p.hard_cap, count(*) AS turns
FROM turns AS t JOIN policies AS p USING (policy_hash)
WHERE ($begin::BIGINT IS NULL OR (t.started_at >= $begin AND t.started_at < $end))
GROUP BY ALL ORDER BY turns DESC, policy_hash;
