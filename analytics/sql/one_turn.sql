-- One row: the turn, its policy and what its labels decide.
SELECT t.*, p.kind AS policy_kind, p.signal, p.soft_cap, p.stuck_at, p.backstop, p.hard_cap,
    truth.stuck, truth.productive, truth.kind, truth.disagreement
FROM turns AS t LEFT JOIN policies AS p USING (policy_hash) LEFT JOIN truth USING (turn_id)
WHERE turn_id = $turn_id;
