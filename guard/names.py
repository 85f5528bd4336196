"""Every event, attribute and metric name, once. `registry.yaml` gives their types, units and meaning."""

from __future__ import annotations

from typing import Final

SCHEMA_VERSION: Final = 1
SCHEMA_URL: Final = "https://turncap.dev/schemas/1"
SCOPE: Final = "turncap"

# Spans
SPAN_TURN: Final = "turncap.turn"
SPAN_LABEL: Final = "turncap.label"

# Events
TURN_STARTED: Final = "turncap.turn.started"
TURN_CALLS: Final = "turncap.turn.calls"
SOFT_CAP_CROSSED: Final = "turncap.soft_cap.crossed"
LOOP_DETECTED: Final = "turncap.loop_detected"
TURN_EXTENDED: Final = "turncap.turn.extended"
TURN_ENDED: Final = "turncap.turn.ended"
TURN_LABELLED: Final = "turncap.turn.labelled"

# Attributes of others
CONVERSATION_ID: Final = "gen_ai.conversation.id"
AGENT_NAME: Final = "gen_ai.agent.name"
REQUEST_MODEL: Final = "gen_ai.request.model"

# Attributes on every event
SCHEMA: Final = "turncap.schema.version"
EVENT_ID: Final = "turncap.event.id"
GUARD_ID: Final = "turncap.guard.id"
TURN_SEQ: Final = "turncap.turn.seq"
TURN_ID: Final = "turncap.turn.id"

# Attributes: the policy and the turn's circumstances
MODE: Final = "turncap.mode"
POLICY_KIND: Final = "turncap.policy.kind"
POLICY_HASH: Final = "turncap.policy.hash"
POLICY_SOFT_CAP: Final = "turncap.policy.soft_cap"
POLICY_STUCK_AT: Final = "turncap.policy.stuck_at"
POLICY_BACKSTOP: Final = "turncap.policy.backstop"
POLICY_HARD_CAP: Final = "turncap.policy.hard_cap"
POLICY_SIGNAL: Final = "turncap.policy.signal"
HOLDOUT_RATE: Final = "turncap.holdout.rate"
CLUSTER_ID: Final = "turncap.cluster.id"
TURN_PARENT_ID: Final = "turncap.turn.parent_id"
TURN_RESUMED_FROM: Final = "turncap.turn.resumed_from"
TURN_CONTINUES: Final = "turncap.turn.continues"
SAMPLE: Final = "turncap.sample"

# Attributes: chunks of calls
CHUNK_INDEX: Final = "turncap.chunk.index"
CHUNK_FIRST_CALL: Final = "turncap.chunk.first_call"
TOOLS: Final = "turncap.tools"
TOOLS_CLASS: Final = "turncap.tools.class"
CALLS_KEY: Final = "turncap.calls.key"
CALLS_TOOL: Final = "turncap.calls.tool"
CALLS_MUTATING: Final = "turncap.calls.mutating"
CALLS_OFFSET_MS: Final = "turncap.calls.offset_ms"
CALLS_BATCH: Final = "turncap.calls.batch"
SETTLED_CALL: Final = "turncap.settled.call"
SETTLED_RESULT: Final = "turncap.settled.result"
SETTLED_ERROR: Final = "turncap.settled.error"
SETTLED_AFTER: Final = "turncap.settled.after"
RETRY_AT: Final = "turncap.retry.at"
RETRY_TOTAL: Final = "turncap.retry.total"

# Attributes: a (would-be) halt, and levels
THRESHOLD: Final = "turncap.threshold"
ENFORCED: Final = "turncap.enforced"
EXPLORED: Final = "turncap.explored"
CALL_NUMBER: Final = "turncap.call.number"
TOTAL: Final = "turncap.total"
SIGNAL: Final = "turncap.signal"
LEVEL: Final = "turncap.level"
LIMIT: Final = "turncap.limit"
REPEAT_COUNT: Final = "turncap.repeat.count"
REPEAT_TOOL: Final = "turncap.repeat.tool"
REPEAT_DIGEST: Final = "turncap.repeat.digest"
REPEAT_FIRST_CALL: Final = "turncap.repeat.first_call"
REPEAT_LAST_CALL: Final = "turncap.repeat.last_call"
DISTINCT_KEYS: Final = "turncap.distinct_keys"
NAME_STREAK_MAX: Final = "turncap.name_streak.max"
LEVEL_REPEAT: Final = "turncap.level.repeat"
LEVEL_RECENT_REPEAT: Final = "turncap.level.recent_repeat"
LEVEL_NOVELTY_REPEAT: Final = "turncap.level.novelty_repeat"
LEVEL_SAME_RESULT_REPEAT: Final = "turncap.level.same_result_repeat"
LEVEL_NO_PROGRESS: Final = "turncap.level.no_progress"
ALSO: Final = "turncap.also"
STUCK: Final = "turncap.stuck"

# Attributes: an extension
GRANTED: Final = "turncap.granted"
BY: Final = "turncap.by"

# Attributes: the end
OUTCOME: Final = "turncap.outcome"
CALLS: Final = "turncap.calls"
RAN: Final = "turncap.ran"
REFUSED: Final = "turncap.refused"
SETTLED: Final = "turncap.settled"
ERRORS: Final = "turncap.errors"
MILESTONES_K: Final = "turncap.milestones.k"
MILESTONES_CALL: Final = "turncap.milestones.call"
MILESTONES_EPOCH: Final = "turncap.milestones.epoch"
MILESTONES_BATCH_FIRST_CALL: Final = "turncap.milestones.batch_first_call"
BATCHES: Final = "turncap.batches"
RETRIES: Final = "turncap.retries"
KEYS_FORGOTTEN: Final = "turncap.keys_forgotten"
CHUNKS_SENT: Final = "turncap.chunks.sent"
CHUNKS_ON_SPAN: Final = "turncap.chunks.on_span"
CANDIDATES: Final = "turncap.candidates"
CANDIDATES_HALT_CALL: Final = "turncap.candidates.halt_call"
DURATION_MS: Final = "turncap.duration_ms"

# Attributes: a label
LABEL_ID: Final = "turncap.label.id"
PRODUCTIVE: Final = "turncap.productive"
KIND: Final = "turncap.kind"
TASK_OUTCOME: Final = "turncap.task_outcome"
JUDGE_VERSION: Final = "turncap.judge.version"
STRATUM: Final = "turncap.stratum"
PROBABILITY: Final = "turncap.probability"

# Metrics
M_TURNS_STARTED: Final = "turncap.turns.started"
M_TURNS: Final = "turncap.turns"
M_HALTS: Final = "turncap.halts"
M_SOFT_CAP_CROSSINGS: Final = "turncap.soft_cap.crossings"
M_CALLS: Final = "turncap.calls"
M_CALLS_REFUSED: Final = "turncap.calls.refused"
M_TOOL_CALLS: Final = "turncap.turn.tool_calls"
M_MAX_REPEAT: Final = "turncap.turn.max_repeat"
M_GUARD_TIME: Final = "turncap.turn.guard_time"
M_ERRORS: Final = "turncap.errors"
M_POLICY_LIMIT: Final = "turncap.policy.limit"
M_GUARD_INFO: Final = "turncap.guard.info"

# Attributes of metrics: on them `turncap.limit` is the limit's name and `turncap.kind` the error's kind
METRIC_LIMIT: Final = "turncap.limit"
METRIC_KIND: Final = "turncap.kind"
METRIC_VERSION: Final = "turncap.version"

TOOL_CALLS_BUCKETS: Final = (1, 2, 5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000)
MAX_REPEAT_BUCKETS: Final = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50, 100)
