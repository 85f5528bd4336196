-- One row a milestone of `repeat` of a turn of the list `listed`, with its place there; 0 where a batch is unknown.
SELECT l.place, m.k, m.call, coalesce(m.batch_first_call, 0) AS batch_first
FROM milestones AS m JOIN listed AS l USING (turn_id);
