-- One row a turn of the list `listed` whose call `call` was seen: the first call of that call's batch, and
-- the total after the whole batch.
SELECT l.place, min(c.n) AS first, max(c.n - coalesce(r.at_call, 0) + coalesce(r.total, 0)) AS total
FROM listed AS l
JOIN calls AS h ON h.turn_id = l.turn_id AND h.n = l.call
JOIN calls AS c ON c.turn_id = l.turn_id AND c.epoch = h.epoch AND (c.batch = h.batch OR c.n = h.n)
LEFT JOIN retries AS r ON r.turn_id = c.turn_id AND r.epoch = c.epoch
GROUP BY l.place ORDER BY l.place;
