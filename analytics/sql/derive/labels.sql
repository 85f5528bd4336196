-- grain: one row a label; a log's attribute wins over a span's, and the later of two tellings.
SELECT
    label_id,
    turn_id,
    arg_min("at", told) AS labelled_at,
    arg_min(stuck, told) AS stuck,
    arg_min(productive, told) AS productive,
    arg_min(kind, told) AS kind,
    arg_min(task_outcome, told) AS task_outcome,
    arg_min("by", told) AS "by",
    arg_min(judge_version, told) AS judge_version,
    arg_min(stratum, told) AS stratum,
    arg_min(probability, told) AS probability
FROM (SELECT *, source || event_id AS told FROM raw_labelled SEMI JOIN batch USING (turn_id))
GROUP BY turn_id, label_id
