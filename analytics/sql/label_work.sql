-- One row: how much of the planned reading is done, and how far two readers agree.
WITH human AS (
    SELECT turn_id, label_id, stuck, row_number() OVER (PARTITION BY turn_id ORDER BY labelled_at, label_id) AS nth
    FROM labels WHERE "by" = 'human' AND stuck IS NOT NULL
), pair AS (
    SELECT a.stuck AS first, b.stuck AS second
    FROM human AS a JOIN human AS b ON b.turn_id = a.turn_id AND a.nth = 1 AND b.nth = 2
)
SELECT
    (SELECT count(*) FROM label_plan) AS planned,
    (SELECT count(*) FROM label_plan WHERE turn_id IN (SELECT turn_id FROM human)) AS done,
    (SELECT count(DISTINCT coalesce(judge_version, '')) FROM labels WHERE "by" = 'judge') AS judge_versions,
    (SELECT count(*) FROM pair) AS pairs,
    (SELECT count(*) FROM pair WHERE first = second) AS agreed,
    (SELECT count(*) FROM pair WHERE first) AS first_stuck,
    (SELECT count(*) FROM pair WHERE second) AS second_stuck,
    (SELECT count(*) FROM truth WHERE disagreement) AS disagreements;
