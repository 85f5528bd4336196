-- One row: the counts that the gates of data quality are decided on.
-- $as_of, $begin and $end (NULL: no bound) are nanoseconds since 1970; $policy_hash and $mode name the turns the
-- verdicts speak of.
WITH counted AS (
    SELECT * FROM turns
    WHERE ($begin::BIGINT IS NULL OR started_at >= $begin::BIGINT)
        AND ($end::BIGINT IS NULL OR started_at < $end::BIGINT)
), mature AS (
    SELECT * FROM counted
    WHERE has_ended OR started_at IS NULL OR started_at + 48 * 3600 * 1000000000::BIGINT <= $as_of
), numbered AS (
    SELECT guard_id, max(seq) - min(seq) + 1 - count(DISTINCT seq) AS gaps, min(seq) - 1 AS before
    FROM counted WHERE guard_id IS NOT NULL AND seq IS NOT NULL GROUP BY guard_id
), doubled AS (
    SELECT guard_id, seq FROM counted WHERE guard_id IS NOT NULL AND seq IS NOT NULL
    GROUP BY guard_id, seq HAVING count(*) > 1
)
SELECT
    (SELECT count(*) FROM counted) AS turns,
    (SELECT count(*) FROM mature) AS started,
    (SELECT count(*) FROM mature WHERE has_ended) AS ended,
    (SELECT count(*) FROM counted) - (SELECT count(*) FROM mature) AS still_open,
    (SELECT count(*) FROM counted WHERE guard_id IS NOT NULL AND seq IS NOT NULL) AS numbered,
    (SELECT coalesce(sum(gaps), 0) FROM numbered)::BIGINT AS gaps,
    (SELECT count(*) FROM doubled) AS doubled,
    (SELECT count(*) FROM mature WHERE chunks_sent IS NOT NULL) AS with_chunks,
    (SELECT count(*) FROM mature WHERE chunks_seen < chunks_sent) AS chunk_gaps,
    (SELECT count(*) FROM counted WHERE dialect = 'turncap') AS guarded,
    (SELECT count(*) FROM counted WHERE dialect = 'turncap' AND policy_hash IS NULL) AS policy_unknown,
    (SELECT count(*) FROM counted AS t JOIN policies AS p USING (policy_hash)
     WHERE p.kind = 'adaptive' AND (policy_hash, coalesce(mode, '')) IS DISTINCT FROM ($policy_hash, $mode))
        AS other_policies,
    (SELECT count(DISTINCT guard_version) FROM counted WHERE policy_hash = $policy_hash) AS guard_versions,
    (SELECT count(*) FROM counted WHERE grade = 'spans-only') AS spans_only;
