-- One row a call of a turn of the list `listed`, in order, with the turn's place there; -1 is unknown.
SELECT l.place, c.n, c.epoch, coalesce(c.batch, -c.n) AS batch, coalesce(c.key, -1) AS key,
    coalesce(c.result, -1) AS result, coalesce(c.settled_after, -1) AS settled_after,
    coalesce(c.settled_order, -1) AS settled_order,
    c.n - coalesce(r.at_call, 0) + coalesce(r.total, 0) AS total
FROM calls AS c JOIN listed AS l USING (turn_id) LEFT JOIN retries AS r ON r.turn_id = c.turn_id AND r.epoch = c.epoch
ORDER BY l.place, c.n;
