-- One row a number of calls: how many turns made that many (a turn without its end counts with what was seen of it).
SELECT coalesce(calls, least_calls) AS calls, count(*) AS turns
FROM turns WHERE coalesce(calls, least_calls) > 0 GROUP BY ALL ORDER BY 1;
