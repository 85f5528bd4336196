-- One row a call of a turn of the list `listed`, in order, with the turn's place there; NULL is unknown.
SELECT l.place, c.key, c.result, c.settled_after, c.settled_order, c.error, c.mutating, c.offset_ms, c.tool_class
FROM calls AS c JOIN listed AS l USING (turn_id)
ORDER BY l.place, c.n;
