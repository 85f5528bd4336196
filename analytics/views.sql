-- What the dashboards read, created in every published snapshot. Times are timestamps in UTC;
-- unknown is NULL. The queries of the panels select from these views alone.

-- At most one row: the report.json that was published with the snapshot.
CREATE TABLE IF NOT EXISTS report (made_at BIGINT NOT NULL, json TEXT NOT NULL);

-- One row a question and rate that its verdict rests on. `rank` orders the words: 2 validated, 1 insufficient
-- evidence, 0 too low or too high.
CREATE OR REPLACE VIEW report_verdicts AS
WITH asked AS (
    SELECT unnest(CAST(json_extract(json, '$.verdicts') AS JSON[])) AS v, made_at FROM report
), rated AS (  -- a verdict that rests on no rate yet keeps its row
    SELECT v, made_at,
        unnest(CASE WHEN json_array_length(v, '$.rates') > 0 THEN CAST(v -> 'rates' AS JSON[]) ELSE [NULL] END) AS r
    FROM asked
)
SELECT
    v ->> 'question' AS question, CAST(v ->> 'running' AS BIGINT) AS running, v ->> 'verdict' AS verdict,
    v ->> 'lean' AS lean, r ->> 'name' AS rate, CAST(r ->> 'estimate' AS DOUBLE) AS estimate,
    CAST(r ->> 'low' AS DOUBLE) AS low, CAST(r ->> 'high' AS DOUBLE) AS high,
    CAST(r ->> 'tolerance' AS DOUBLE) AS tolerance, CAST(r ->> 'n' AS DOUBLE) AS n,
    json_extract_string(v, '$.reasons[0]') AS reason,
    CASE v ->> 'verdict' WHEN 'validated' THEN 2 WHEN 'insufficient evidence' THEN 1 WHEN 'too low' THEN 0
        WHEN 'too high' THEN 0 END AS rank,
    make_timestamp(made_at // 1000) AS made
FROM rated;

-- One row a signal, threshold and soft cap: what it would have done to these turns.
CREATE OR REPLACE VIEW report_signals AS
SELECT
    s ->> 'signal' AS signal, CAST(s ->> 'k' AS BIGINT) AS k, CAST(s ->> 'soft_cap' AS BIGINT) AS soft_cap,
    CAST(s ->> 'stuck_caught' AS BIGINT) AS stuck_caught, CAST(s ->> 'stuck_turns' AS BIGINT) AS stuck_turns,
    CAST(s ->> 'others_halted' AS BIGINT) AS others_halted, CAST(s ->> 'other_turns' AS BIGINT) AS other_turns,
    CAST(s ->> 'calls_saved' AS BIGINT) AS calls_saved, CAST(s ->> 'calls_cut' AS BIGINT) AS calls_cut, s ->> 'badge' AS badge,
    array_to_string(CAST(json_extract_string(s, '$.unseen[*]') AS TEXT[]), ', ') AS unseen
FROM (SELECT unnest(CAST(json_extract(json, '$.signals') AS JSON[])) AS s FROM report);

-- One row a population (turns that are or would be halted; turns in which some call reached stuck_at) and kind of the
-- false-stuck pattern: how many by their calls up to there, how many by the whole turn, and what readers say of these.
CREATE OR REPLACE VIEW report_kinds AS
SELECT
    k ->> 'population' AS population, coalesce(k ->> 'kind', 'not known') AS kind, CAST(k ->> 'turns' AS BIGINT) AS turns,
    CAST(k ->> 'share' AS DOUBLE) AS share, CAST(k ->> 'low' AS DOUBLE) AS low, CAST(k ->> 'high' AS DOUBLE) AS high,
    CAST(k ->> 'whole' AS BIGINT) AS whole, CAST(k ->> 'labelled' AS BIGINT) AS labelled,
    CAST(k ->> 'labelled_agree' AS BIGINT) AS labelled_agree
FROM (SELECT unnest(CAST(json_extract(json, '$.false_stuck') AS JSON[])) AS k FROM report);

-- One row a week: the share of turns that are or would be halted, with its interval.
CREATE OR REPLACE VIEW report_trend AS
SELECT
    CAST(strptime((w ->> 'name') || '-1', '%G-W%V-%u') AS TIMESTAMP) AS week_start,
    CAST(w -> 'halted' ->> 'events' AS BIGINT) AS halted, CAST(w ->> 'turns' AS BIGINT) AS turns,
    CAST(w -> 'halted' ->> 'estimate' AS DOUBLE) AS estimate, CAST(w -> 'halted' ->> 'low' AS DOUBLE) AS low,
    CAST(w -> 'halted' ->> 'high' AS DOUBLE) AS high
FROM (SELECT unnest(CAST(json_extract(json, '$.trend.weeks') AS JSON[])) AS w FROM report);

-- One row a gate: whether the data are good enough to judge, and which questions they block.
CREATE OR REPLACE VIEW report_gates AS
SELECT g ->> 'name' AS gate, g ->> 'state' AS state, g ->> 'text' AS what,
    array_to_string(CAST(json_extract_string(g, '$.blocks[*]') AS TEXT[]), ', ') AS blocks
FROM (SELECT unnest(CAST(json_extract(json, '$.gates') AS JSON[])) AS g FROM report);

-- One row a turn, with its policy and what its labels decide.
CREATE OR REPLACE VIEW seen_turns AS
SELECT
    t.turn_id, make_timestamp(t.started_at // 1000) AS started, t.agent, t.model, t.mode, t.outcome,
    coalesce(t.calls, t.least_calls) AS calls, t.max_repeat, t.refused, t.threshold AS halted_by, t.halted_call,
    t.would_halt_threshold, t.would_halt_call, t.explored, t.grade, t.dialect, t.cluster_id, t.duration_ms,
    p.kind AS policy_kind, p.signal, p.soft_cap, p.stuck_at, coalesce(p.backstop, p.hard_cap) AS last_limit,
    truth.stuck, truth.productive, truth.kind
FROM turns AS t LEFT JOIN policies AS p USING (policy_hash) LEFT JOIN truth USING (turn_id);

-- One row a week: turns with a call, and the (would-be) halts among them by what their labels say.
CREATE OR REPLACE VIEW weekly_halts AS
SELECT
    CAST(date_trunc('week', started) AS TIMESTAMP) AS week,
    count(*) AS turns,
    count(*) FILTER (would_halt_call IS NOT NULL) AS halts,
    count(*) FILTER (would_halt_call IS NOT NULL AND stuck) AS halts_stuck,
    count(*) FILTER (would_halt_call IS NOT NULL AND NOT stuck) AS halts_not_stuck,
    count(*) FILTER (would_halt_call IS NOT NULL AND stuck IS NULL) AS halts_unread
FROM seen_turns WHERE calls > 0 AND started IS NOT NULL GROUP BY ALL;

-- One row a weekly look at a question.
CREATE OR REPLACE VIEW verdict_history AS
SELECT
    CAST(strptime(week || '-1', '%G-W%V-%u') AS TIMESTAMP) AS week_start, week, question, scope, look, level, verdict,
    estimate, low, high, make_timestamp(looked_at // 1000) AS looked
FROM looks;

-- One row: how fresh and how complete the data are.
CREATE OR REPLACE VIEW freshness AS
SELECT
    (SELECT max(started) FROM seen_turns) AS newest_turn,
    (SELECT make_timestamp(max(loaded_at) // 1000) FROM files) AS loaded,
    (SELECT count(*) FROM turns) AS turns,
    (SELECT count(*) FROM turns WHERE has_started AND NOT has_ended) AS not_ended,
    (SELECT count(*) FROM files) AS files,
    (SELECT count(*) FROM rejects) AS rejects,
    (SELECT count(*) FROM seen_turns WHERE would_halt_call IS NOT NULL AND stuck IS NULL) AS halts_unread;

-- One row a numbered call, with the levels that make repetition visible. `asked` counts this very call so far in
-- its epoch, `most_repeated` is the largest such count so far (level of `repeat`), `nothing_new` the settled calls
-- since a never-seen (key, result) when this one had settled (level of `no_progress`).
CREATE OR REPLACE VIEW call_steps AS
WITH counted AS (
    SELECT *, row_number() OVER (PARTITION BY turn_id, epoch, key ORDER BY n) AS asked,
        settled_order IS NOT NULL AND row_number() OVER (
            PARTITION BY turn_id, epoch, result ORDER BY settled_order NULLS LAST) = 1 AS brings_new
    FROM calls
), islands AS (
    SELECT *, sum(CAST(brings_new AS INTEGER)) OVER (
        PARTITION BY turn_id, epoch ORDER BY settled_order NULLS LAST) AS island
    FROM counted
)
SELECT
    turn_id, n, epoch, tool, tool_class, key, result, error, refused, mutating, offset_ms / 1000.0 AS seconds,
    CASE WHEN key IS NOT NULL THEN asked END AS asked,
    max(CASE WHEN key IS NOT NULL THEN asked END) OVER (PARTITION BY turn_id, epoch ORDER BY n) AS most_repeated,
    CASE WHEN settled_order IS NOT NULL THEN
        count(*) OVER (PARTITION BY turn_id, epoch, island ORDER BY settled_order NULLS LAST) - CAST(island > 0 AS INTEGER)
    END AS nothing_new
FROM islands;
