-- One row a planned turn that $reader should still read, what moves a verdict most first: turns that nobody
-- has read, and those of the second reading that exactly one other reader has read.
WITH reading AS (
    SELECT turn_id, count(DISTINCT split_part(label_id, '#', 1)) AS readers,
        bool_or(split_part(label_id, '#', 1) = $reader) AS mine
    FROM labels WHERE "by" = 'human' GROUP BY turn_id
)
SELECT p.turn_id, p.stratum, p.probability, p.second_reader AND coalesce(r.readers, 0) > 0 AS second
FROM label_plan AS p LEFT JOIN reading AS r USING (turn_id)
WHERE NOT coalesce(r.mine, FALSE) AND (coalesce(r.readers, 0) = 0 OR (p.second_reader AND r.readers = 1))
ORDER BY second, p.priority DESC, p.turn_id;
