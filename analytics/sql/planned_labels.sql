-- One row a turn that a judge or a planned reader labelled: whether each says it is not stuck (1) or stuck (0).
WITH said AS (
    SELECT *, CASE WHEN kind IN ('rerun', 'poll', 'burst') OR NOT stuck THEN 1.0
                   WHEN stuck OR kind = 'stuck' THEN 0.0 END AS wrong
    FROM labels
)
SELECT turn_id,
    arg_max(wrong, (coalesce(labelled_at, 0), label_id)) FILTER ("by" = 'judge') AS judge,
    arg_max(wrong, (coalesce(labelled_at, 0), label_id)) FILTER ("by" = 'human' AND probability > 0) AS human,
    arg_max(probability, (coalesce(labelled_at, 0), label_id)) FILTER ("by" = 'human' AND probability > 0)
        AS probability
FROM said WHERE wrong IS NOT NULL
GROUP BY turn_id HAVING count(*) FILTER ("by" = 'human' AND probability > 0) > 0 OR bool_or("by" = 'judge');
