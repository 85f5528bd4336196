-- One row: the counts that the gates of data quality are decided on.
-- $as_of is nanoseconds since 1970; $policy_hash and $mode name the turns the verdicts speak of.
WITH mature AS (
    SELECT *, coalesce(calls, least_calls) AS asked FROM turns
    WHERE has_ended OR started_at IS NULL OR started_at + 48 * 3600 * 1000000000::BIGINT <= $as_of
), numbered AS (
    SELECT guard_id, max(seq) - min(seq) + 1 - count(DISTINCT seq) AS gaps, min(seq) - 1 AS before
    FROM turns WHERE guard_id IS NOT NULL AND seq IS NOT NULL GROUP BY guard_id
), doubled AS (
    SELECT guard_id, seq FROM turns WHERE guard_id IS NOT NULL AND seq IS NOT NULL
    GROUP BY guard_id, seq HAVING count(*) > 1
)
SELECT
    (SELECT count(*) FROM turns) AS turns,
    (SELECT count(*) FROM mature) AS started,
    (SELECT count(*) FROM mature WHERE has_ended) AS ended,
    (SELECT count(*) FROM turns) - (SELECT count(*) FROM mature) AS still_open,
    (SELECT count(*) FROM turns WHERE guard_id IS NOT NULL AND seq IS NOT NULL) AS numbered,
    (SELECT coalesce(sum(gaps), 0) FROM numbered)::BIGINT AS gaps,
    (SELECT count(*) FROM doubled) AS doubled,
    (SELECT count(*) FROM mature WHERE chunks_sent IS NOT NULL) AS with_chunks,
    (SELECT count(*) FROM mature WHERE chunks_seen < chunks_sent) AS chunk_gaps,
    (SELECT count(*) FROM turns WHERE dialect = 'turncap') AS guarded,
    (SELECT count(*) FROM turns WHERE dialect = 'turncap' AND policy_hash IS NULL) AS policy_unknown,
    (SELECT count(*) FROM turns AS t JOIN policies AS p USING (policy_hash)
     WHERE p.kind = 'adaptive' AND (policy_hash, coalesce(mode, '')) IS DISTINCT FROM ($policy_hash, $mode))
        AS other_policies,
    (SELECT count(DISTINCT guard_version) FROM turns WHERE policy_hash = $policy_hash) AS guard_versions,
    (SELECT count(*) FROM turns WHERE grade = 'spans-only') AS spans_only;
