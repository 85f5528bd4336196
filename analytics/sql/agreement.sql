-- One row: turns read by two people, and in how many they say the same of being stuck and of the kind.
WITH nth AS (
    SELECT turn_id, stuck, kind, split_part(label_id, '#', 1) AS reader
    FROM labels WHERE "by" = 'human'
    QUALIFY row_number() OVER (PARTITION BY turn_id, reader ORDER BY labelled_at DESC, label_id DESC) = 1
), pair AS (
    SELECT min_by(stuck, reader) AS one, max_by(stuck, reader) AS other,
        min_by(kind, reader) AS one_kind, max_by(kind, reader) AS other_kind
    FROM nth GROUP BY turn_id HAVING count(*) >= 2
)
SELECT count(*) AS pairs, count(*) FILTER (one = other) AS same_stuck,
    count(*) FILTER (one_kind = other_kind) AS same_kind
FROM pair;
