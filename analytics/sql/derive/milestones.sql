-- grain: one row a milestone of the signal `repeat`.
SELECT turn_id, epoch, k, min(call) AS call, arg_min(batch_first_call, call) AS batch_first_call
FROM (
    SELECT
        turn_id,
        unnest(milestones_epoch) AS epoch,
        unnest(milestones_k) AS k,
        unnest(milestones_call) AS call,
        unnest(milestones_batch_first_call) AS batch_first_call
    FROM ended
)
WHERE epoch IS NOT NULL AND k IS NOT NULL AND call IS NOT NULL
GROUP BY turn_id, epoch, k
