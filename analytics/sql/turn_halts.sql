-- One row a (would-be) halt of one turn, in order.
SELECT threshold, mode, enforced, explored, call_number, total, signal, level, "limit", repeat_count, repeat_tool,
    repeat_first_call, repeat_last_call
FROM loop_events WHERE turn_id = $turn_id ORDER BY call_number, event_id;
