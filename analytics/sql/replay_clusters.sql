-- One row a turn of the list `listed`, in its order: the cluster it belongs to.
SELECT coalesce(t.cluster_id, t.session_id, t.conversation_id, t.turn_id) AS cluster
FROM turns AS t JOIN listed AS l USING (turn_id) ORDER BY l.place;
