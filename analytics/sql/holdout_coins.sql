-- One row a holdout rate: how many would-be soft-stuck halts of enforcing guards there were, and how many the coin let run.
-- $begin and $end are nanoseconds since 1970, NULL for no bound. Extended turns are left out: a person's answer came between.
SELECT t.holdout_rate AS rate, count(*) AS would_halts, count(*) FILTER (t.explored) AS explored
FROM turns AS t
WHERE t.mode = 'enforce' AND t.would_halt_threshold = 'soft-stuck' AND NOT t.extended AND t.holdout_rate > 0
    AND ($begin::BIGINT IS NULL OR t.started_at >= $begin::BIGINT)
    AND ($end::BIGINT IS NULL OR t.started_at < $end::BIGINT)
GROUP BY t.holdout_rate ORDER BY rate;
