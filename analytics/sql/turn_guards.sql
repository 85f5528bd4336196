-- One row a turn: by which guard it was numbered.
SELECT turn_id, guard_id, seq FROM turns;
