-- One row a holdout rate: how many would-be soft-stuck halts of enforcing guards there were, and how many the coin let run.
-- Extended turns are left out: a person's answer came between.
SELECT t.holdout_rate AS rate, count(*) AS would_halts, count(*) FILTER (t.explored) AS explored
FROM turns AS t
WHERE t.mode = 'enforce' AND t.would_halt_threshold = 'soft-stuck' AND NOT t.extended AND t.holdout_rate > 0
GROUP BY t.holdout_rate ORDER BY rate;
