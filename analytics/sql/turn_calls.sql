-- One row a numbered call of one turn, in order.
SELECT n, epoch, batch, key, result, tool, tool_class, mutating, error, offset_ms, refused, settled_after, settled_order
FROM calls WHERE turn_id = $turn_id ORDER BY n;
