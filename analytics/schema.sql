-- The one description of the data. Times are nanoseconds since 1970 as BIGINT, ids are text,
-- unknown is NULL and never 0 or -1. Call numbers start at 1, keys and results at 0.

CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);  -- application = turncap, schema_version

-- One row a turn: what started, what ended, or both.
CREATE TABLE turns (
    turn_id TEXT PRIMARY KEY,
    guard_id TEXT,              -- NULL where no guard ran (dialects, transcripts)
    seq BIGINT,                 -- 1, 2, 3 … per guard: a gap is a turn lost whole
    cluster_id TEXT,            -- keyed digest of user or installation
    session_id TEXT,
    conversation_id TEXT,
    parent_id TEXT,
    resumed_from TEXT,
    continues TEXT,
    agent TEXT,
    model TEXT,
    mode TEXT,                  -- enforce, shadow; NULL without a guard
    policy_hash TEXT,           -- of policies
    guard_version TEXT,
    schema_version INTEGER,
    dialect TEXT NOT NULL,      -- turncap, genai, openinference, claude-code, …
    grade TEXT NOT NULL,        -- exact, no-results, names-only, spans-only
    length_limited BOOLEAN NOT NULL,
    sample TEXT,                -- the data set's own word for its limit
    started_at BIGINT,
    ended_at BIGINT,
    has_started BOOLEAN NOT NULL,
    has_ended BOOLEAN NOT NULL,
    outcome TEXT,               -- completed, halted, errored, aborted; NULL while open
    task_outcome TEXT,          -- the source's own word, by the label that decides
    calls BIGINT,               -- numbered calls, as the turn's end says
    total BIGINT,
    refused BIGINT,
    ran BIGINT,
    settled BIGINT,
    errors BIGINT,
    distinct_keys BIGINT,
    max_repeat BIGINT,
    name_streak_max BIGINT,
    halted_call BIGINT,         -- number of the call of the first enforced halt
    threshold TEXT,             -- of that halt
    would_halt_call BIGINT,     -- number of the call of the first halt in any mode
    would_halt_threshold TEXT,
    explored BOOLEAN,
    holdout_rate DOUBLE,
    extended BOOLEAN NOT NULL,  -- a person lifted the halt
    batches BIGINT,
    retries BIGINT,
    keys_forgotten BIGINT,
    chunks_sent BIGINT,
    chunks_seen BIGINT NOT NULL,
    least_calls BIGINT NOT NULL,  -- what is known to have been called, whatever was lost
    duration_ms DOUBLE
);

-- One row a numbered call, from chunks, spans or transcripts.
CREATE TABLE calls (
    turn_id TEXT NOT NULL,
    n BIGINT NOT NULL,
    epoch BIGINT NOT NULL,      -- 0, and one more after each retry
    batch BIGINT,
    key BIGINT,                 -- NULL where the arguments are unknown
    result BIGINT,              -- numbers (key, result id) pairs; NULL until settled
    tool TEXT,
    tool_class TEXT,
    mutating BOOLEAN,
    error BOOLEAN,
    offset_ms BIGINT,
    refused BOOLEAN NOT NULL,
    settled_after BIGINT,       -- calls admitted when it settled
    settled_order BIGINT  -- 0, 1, 2 … in the order in which the turn's calls settled
);

-- One row a retry: calls numbered up to at_call came before it; the total went back to total.
CREATE TABLE retries (
    turn_id TEXT NOT NULL, epoch BIGINT NOT NULL, at_call BIGINT NOT NULL, total BIGINT NOT NULL
);

-- One row a milestone of the signal `repeat`: the call at which some key reached k in that epoch.
CREATE TABLE milestones (
    turn_id TEXT NOT NULL, epoch BIGINT NOT NULL, k BIGINT NOT NULL, call BIGINT NOT NULL,
    batch_first_call BIGINT
);

-- One row a turn and candidate policy judged beside the one in force.
CREATE TABLE candidates (
    turn_id TEXT NOT NULL, policy_hash TEXT NOT NULL, halt_call BIGINT
);

-- One row a policy: what its hash stands for.
CREATE TABLE policies (
    policy_hash TEXT PRIMARY KEY, kind TEXT NOT NULL, signal TEXT, soft_cap BIGINT, stuck_at BIGINT,
    backstop BIGINT, hard_cap BIGINT, text TEXT
);

-- Many rows a turn: ground truth by whom. NULL is unknown.
CREATE TABLE labels (
    label_id TEXT NOT NULL, turn_id TEXT NOT NULL, labelled_at BIGINT, stuck BOOLEAN, productive BOOLEAN,
    kind TEXT, task_outcome TEXT, "by" TEXT NOT NULL, judge_version TEXT, stratum TEXT, probability DOUBLE,
    PRIMARY KEY (turn_id, label_id)
);

-- The planned sample of turns to label, with the probability by which each was drawn.
CREATE TABLE label_plan (
    turn_id TEXT PRIMARY KEY, stratum TEXT NOT NULL, probability DOUBLE NOT NULL, planned_at BIGINT NOT NULL,
    priority DOUBLE NOT NULL, second_reader BOOLEAN NOT NULL
);

-- One row a look at a question in a week, written once.
CREATE TABLE looks (
    week TEXT NOT NULL, question TEXT NOT NULL, scope TEXT NOT NULL, look INTEGER NOT NULL, level DOUBLE NOT NULL,
    looked_at BIGINT NOT NULL, verdict TEXT NOT NULL, estimate DOUBLE, low DOUBLE, high DOUBLE,
    PRIMARY KEY (week, question, scope)
);

-- One row a (would-be) halt: event turncap.loop_detected.
CREATE TABLE loop_events (
    event_id TEXT NOT NULL, turn_id TEXT NOT NULL, "at" BIGINT, threshold TEXT NOT NULL, mode TEXT,
    enforced BOOLEAN NOT NULL, explored BOOLEAN, holdout_rate DOUBLE, call_number BIGINT, total BIGINT,
    signal TEXT, level BIGINT, "limit" BIGINT, repeat_count BIGINT, repeat_tool TEXT, repeat_digest TEXT,
    repeat_first_call BIGINT, repeat_last_call BIGINT, distinct_keys BIGINT, name_streak_max BIGINT,
    level_repeat BIGINT, level_recent_repeat BIGINT, level_novelty_repeat BIGINT,
    level_same_result_repeat BIGINT, level_no_progress BIGINT, also TEXT[]
);

-- The last value of each cumulative counter (summed for delta ones), to reconcile with events.
CREATE TABLE counters (
    resource TEXT NOT NULL, metric TEXT NOT NULL, attributes TEXT NOT NULL, started_at BIGINT NOT NULL,
    "at" BIGINT NOT NULL, value DOUBLE NOT NULL,
    PRIMARY KEY (resource, metric, attributes, started_at)
);

-- The ledger: what has been read of which content. The fingerprint is a hash of its first line; digest is
-- the hash of its first `offset` bytes, uncompressed.
CREATE TABLE files (
    fingerprint TEXT NOT NULL, path TEXT NOT NULL, size BIGINT NOT NULL, "offset" BIGINT NOT NULL,
    digest TEXT NOT NULL, lines BIGINT NOT NULL, records BIGINT NOT NULL, loaded_at BIGINT NOT NULL
);

-- What could not be read, and why.
CREATE TABLE rejects (
    path TEXT NOT NULL, line BIGINT, "offset" BIGINT, reason TEXT NOT NULL, loaded_at BIGINT NOT NULL,
    fingerprint TEXT                -- of files
);

-- What was read, as it was read: one row an event and source (log, span, or the turn's span itself), copies
-- of one source folded. The tables above are derived from these for every turn that a load touched, so that
-- neither the order of loading nor what is loaded twice matters.
CREATE TABLE raw_started (
    event_id TEXT NOT NULL, turn_id TEXT NOT NULL, source TEXT NOT NULL, "at" BIGINT, guard_id TEXT, seq
    BIGINT, schema_version BIGINT, guard_version TEXT, mode TEXT, policy_kind TEXT, policy_hash TEXT,
    policy_soft_cap BIGINT, policy_stuck_at BIGINT, policy_backstop BIGINT, policy_hard_cap BIGINT,
    policy_signal TEXT, holdout_rate DOUBLE, cluster_id TEXT, turn_parent_id TEXT, turn_resumed_from
    TEXT, turn_continues TEXT, sample TEXT, gen_ai_conversation_id TEXT, gen_ai_agent_name TEXT,
    gen_ai_request_model TEXT
);
CREATE TABLE raw_chunks (
    event_id TEXT NOT NULL, turn_id TEXT NOT NULL, source TEXT NOT NULL, "at" BIGINT, guard_id TEXT, seq
    BIGINT, schema_version BIGINT, guard_version TEXT, chunk_index BIGINT, chunk_first_call BIGINT, tools
    TEXT[], tools_class TEXT[], calls_key BIGINT[], calls_tool BIGINT[], calls_mutating BIGINT[],
    calls_offset_ms BIGINT[], calls_batch BIGINT[], settled_call BIGINT[], settled_result BIGINT[],
    settled_error BIGINT[], settled_after BIGINT[], retry_at BIGINT[], retry_total BIGINT[]
);
CREATE TABLE raw_crossed (
    event_id TEXT NOT NULL, turn_id TEXT NOT NULL, source TEXT NOT NULL, "at" BIGINT, guard_id TEXT, seq
    BIGINT, schema_version BIGINT, guard_version TEXT, total BIGINT, stuck BOOLEAN, level_repeat BIGINT,
    level_recent_repeat BIGINT, level_novelty_repeat BIGINT, level_same_result_repeat BIGINT,
    level_no_progress BIGINT
);
CREATE TABLE raw_detected (
    event_id TEXT NOT NULL, turn_id TEXT NOT NULL, source TEXT NOT NULL, "at" BIGINT, guard_id TEXT, seq
    BIGINT, schema_version BIGINT, guard_version TEXT, threshold TEXT, mode TEXT, enforced BOOLEAN,
    explored BOOLEAN, holdout_rate DOUBLE, policy_kind TEXT, policy_hash TEXT, policy_soft_cap BIGINT,
    policy_stuck_at BIGINT, policy_backstop BIGINT, policy_hard_cap BIGINT, policy_signal TEXT,
    call_number BIGINT, total BIGINT, signal TEXT, level BIGINT, "limit" BIGINT, repeat_count BIGINT,
    repeat_tool TEXT, repeat_digest TEXT, repeat_first_call BIGINT, repeat_last_call BIGINT,
    distinct_keys BIGINT, name_streak_max BIGINT, level_repeat BIGINT, level_recent_repeat BIGINT,
    level_novelty_repeat BIGINT, level_same_result_repeat BIGINT, level_no_progress BIGINT, also TEXT[],
    gen_ai_conversation_id TEXT, gen_ai_agent_name TEXT, gen_ai_request_model TEXT
);
CREATE TABLE raw_extended (
    event_id TEXT NOT NULL, turn_id TEXT NOT NULL, source TEXT NOT NULL, "at" BIGINT, guard_id TEXT, seq
    BIGINT, schema_version BIGINT, guard_version TEXT, granted BIGINT, "by" TEXT, total BIGINT
);
CREATE TABLE raw_ended (
    event_id TEXT NOT NULL, turn_id TEXT NOT NULL, source TEXT NOT NULL, "at" BIGINT, guard_id TEXT, seq
    BIGINT, schema_version BIGINT, guard_version TEXT, outcome TEXT, calls BIGINT, ran BIGINT, total
    BIGINT, refused BIGINT, settled BIGINT, errors BIGINT, distinct_keys BIGINT, repeat_count BIGINT,
    name_streak_max BIGINT, milestones_k BIGINT[], milestones_call BIGINT[], milestones_epoch BIGINT[],
    milestones_batch_first_call BIGINT[], batches BIGINT, retries BIGINT, keys_forgotten BIGINT,
    chunks_sent BIGINT, chunks_on_span BIGINT, candidates TEXT[], candidates_halt_call BIGINT[],
    duration_ms DOUBLE, gen_ai_conversation_id TEXT, gen_ai_agent_name TEXT, gen_ai_request_model TEXT
);
CREATE TABLE raw_labelled (
    event_id TEXT NOT NULL, turn_id TEXT NOT NULL, source TEXT NOT NULL, "at" BIGINT, guard_id TEXT, seq
    BIGINT, schema_version BIGINT, guard_version TEXT, label_id TEXT, stuck BOOLEAN, productive BOOLEAN,
    kind TEXT, task_outcome TEXT, "by" TEXT, judge_version TEXT, stratum TEXT, probability DOUBLE
);

-- One row a thing that a dialect saw (`analytics.dialects.base.Seen`); data is JSON of figures and digests.
CREATE TABLE raw_seen (
    group_id TEXT NOT NULL, dialect TEXT NOT NULL, seen_id TEXT NOT NULL, kind TEXT NOT NULL, "at" BIGINT,
    data TEXT NOT NULL USING COMPRESSION zstd  -- packs better than the default, in half the time
);

-- Which turns were assembled from which group, so that they can be replaced.
CREATE TABLE group_turns (group_id TEXT NOT NULL, turn_id TEXT NOT NULL);

-- One row a variant that lost: an event told twice by the same source, with different content.
CREATE TABLE conflicts (
    event_id TEXT NOT NULL, source TEXT NOT NULL, variant TEXT NOT NULL,  -- variant: a digest of the content
    PRIMARY KEY (event_id, source, variant)
);

-- Turns and groups that were touched since the tables above were last derived; empty after every load.
CREATE TABLE pending (kind TEXT NOT NULL, id TEXT NOT NULL);  -- kind: turn, group

-- One row a labelled turn: what its labels decide, field by field. The reader comes first (human, user,
-- judge, import), then the latest; a label that says nothing of a field has no voice in it.
CREATE VIEW truth AS
WITH said AS (
    SELECT *,
        CASE WHEN kind IN ('rerun', 'poll', 'burst') OR NOT stuck THEN FALSE
             WHEN stuck OR kind = 'stuck' THEN TRUE END AS is_stuck,
        (list_position(['import', 'judge', 'user', 'human'], "by"), coalesce(labelled_at, 0), label_id) AS voice
    FROM labels
)
SELECT turn_id,
    arg_max(is_stuck, voice) FILTER (is_stuck IS NOT NULL) AS stuck,
    arg_max(productive, voice) FILTER (productive IS NOT NULL) AS productive,
    arg_max(kind, voice) FILTER (kind IS NOT NULL) AS kind,
    arg_max(task_outcome, voice) FILTER (task_outcome IS NOT NULL) AS task_outcome,
    count(DISTINCT is_stuck) > 1 OR count(DISTINCT productive) > 1 AS disagreement
FROM said GROUP BY turn_id;
