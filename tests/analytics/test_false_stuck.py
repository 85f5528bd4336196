"""What looks stuck is named by what came between its repeats; labels are only compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import accumulate
from typing import Any

import pytest

from analytics.false_stuck import LABELS, RULES, Features, Kind, Rule, Trace, classify, features
from tests.analytics.evidence_db import evidence_rows


def trace(
    asked: Sequence[tuple[int, int | None]],
    *,
    gap_s: float | None = None,
    failed: bool | None = False,
    mutating: bool | None = None,
    tool_class: str | None = None,
) -> Trace:
    """Calls as (key, answer), each settled before the next, `gap_s` apart; an answer of None is unknown."""
    pairs: dict[tuple[int, int | None], int] = {}
    result = [None if pair[1] is None else pairs.setdefault(pair, len(pairs)) for pair in asked]
    calls = range(len(asked))
    return Trace(
        key=[key for key, _ in asked],
        result=result,
        settled_after=[None if one is None else n + 1 for n, one in enumerate(result)],
        settled_order=[None if one is None else n for n, one in enumerate(result)],
        error=[failed for _ in calls],
        mutating=[mutating for _ in calls],
        offset_ms=[None if gap_s is None else round(n * gap_s * 1000) for n in calls],
        tool_class=[tool_class for _ in calls],
    )


START = [(0, 0), (1, 0)]  # a turn begins by looking around
SLOW_POLL = [*START, *[(9, 0)] * 29, (9, 1), (2, 0), (3, 0)]
STATUS_POLL = [*START, *[pair for n in range(12) for pair in ((8, n // 3), (9, n // 2))], (2, 0)]
STREAM = [*START, *[(9, n) for n in range(9)], (2, 0)]
STORM = [*START, *[(9, 0)] * 200]


@pytest.mark.parametrize("timed", [True, False], ids=["with times", "without times"])
@pytest.mark.parametrize(
    ("asked", "gap_s", "kind"),
    [
        pytest.param(SLOW_POLL, 36, Kind.POLLING, id="29 times the same answer 36 s apart, then a new one"),
        pytest.param(STATUS_POLL, 36, Kind.POLLING, id="two alternating status commands, changing answers"),
        pytest.param(STATUS_POLL, 4, Kind.POLLING, id="the same, asked fast"),
        pytest.param(STREAM, 5, Kind.POLLING, id="a streamed output read 9 times"),
        pytest.param(STORM, 4, Kind.STUCK, id="a storm of 200 equal answers 4 s apart"),
        pytest.param([*STORM, (2, 0)], 4, Kind.STUCK, id="such a storm that ends in a new call"),
        pytest.param(
            [*START, *[(8, 0), (9, 0)] * 40], 4, Kind.STUCK, id="two alternating calls, always equal answers"
        ),
    ],
)
def test_waiting_is_told_from_a_storm(
    asked: Sequence[tuple[int, int | None]], gap_s: float, kind: Kind, timed: bool
) -> None:
    assert classify(features(trace(asked, gap_s=gap_s if timed else None)))[0] is kind


@pytest.mark.parametrize(
    ("asked", "gap_s", "kind"),
    [
        pytest.param(SLOW_POLL, 36, Kind.POLLING, id="a slow poll is seen to wait"),
        pytest.param(STORM, 4, Kind.STUCK, id="a storm is seen not to wait"),
        pytest.param(SLOW_POLL, None, Kind.UNCLEAR, id="without times a slow poll cannot be told yet"),
        pytest.param(STORM, None, Kind.UNCLEAR, id="without times nor can a storm"),
        pytest.param(STREAM, None, Kind.POLLING, id="new answers tell, times or not"),
    ],
)
def test_at_the_sixth_repeat(
    asked: Sequence[tuple[int, int | None]], gap_s: float | None, kind: Kind
) -> None:
    sixth = [n for n, (key, _) in enumerate(asked, start=1) if key == 9][5]
    assert classify(features(trace(asked, gap_s=gap_s), sixth))[0] is kind


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({}, id="no results"),
        pytest.param({"gap_s": 4}, id="no results, fast"),
        pytest.param({"failed": None}, id="no results, no errors"),
        pytest.param({"failed": True}, id="no results, all failed"),
        pytest.param({"mutating": True}, id="no results, all change files"),
        pytest.param({"tool_class": "poll"}, id="no results, a tool that polls"),
    ],
)
@pytest.mark.parametrize("asked", [SLOW_POLL, STATUS_POLL, STREAM, STORM])
def test_without_results_nothing_is_called_stuck(
    asked: Sequence[tuple[int, int | None]], change: dict[str, Any]
) -> None:
    found = features(trace([(key, None) for key, _ in asked], **change))
    assert found.dry_run is None
    assert classify(found)[0] is not Kind.STUCK


RERUN = [pair for n in range(8) for pair in ((9, n), (10 + n, 0))]


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        pytest.param(features(trace(RERUN)), Kind.RERUN, id="a new call between all repeats"),
        pytest.param(
            features(trace([(key, None) for key, _ in RERUN])), Kind.RERUN, id="the same without results"
        ),
        pytest.param(
            features(trace([(9, 0)] * 4, failed=True)), Kind.BURST, id="four failures in a row"
        ),
        pytest.param(
            features(trace([(9, 0)] * 5, tool_class="poll")), Kind.POLLING, id="a poll tool, few calls"
        ),
        pytest.param(
            features(trace([(9, 0)] * 50, tool_class="poll", gap_s=4)), Kind.STUCK,
            id="a storm is one even of a tool that polls",
        ),
        pytest.param(features(trace([(9, 0)] * 5)), Kind.UNCLEAR, id="too short to tell"),
        pytest.param(features(trace([(9, 0)])), Kind.UNCLEAR, id="one call"),
    ],
)  # fmt: skip
def test_other_kinds(found: Features, kind: Kind) -> None:
    assert classify(found)[0] is kind


def test_results_that_settle_after_the_call_asked_about_are_not_known_to_it() -> None:
    late = replace(trace(STREAM), settled_after=[len(STREAM)] * len(STREAM))
    assert features(late, 8).dry_run is None
    assert features(late).dry_run == 0


def test_a_turn_without_calls_has_no_features() -> None:
    with pytest.raises(ValueError, match="without calls"):
        features(trace([]))


@pytest.mark.parametrize("rule", RULES, ids=[rule.because for rule in RULES])
def test_every_rule_names_features_that_exist_and_can_be_shown(rule: Rule) -> None:
    for condition in rule.conditions:
        assert condition.feature in {field.name for field in fields(Features)}
        assert condition.text.startswith(condition.feature)


def evidence_trace(row: dict[str, Any], **known: bool) -> Trace:
    """A bundled turn; of `tools` and `mutating` only what is not declared unknown."""
    asked = list(zip(row["key"], zip(row["result_norm"], row["error"], strict=True), strict=True))
    pairs: dict[Any, int] = {}
    calls = len(asked)
    gaps = row["gap_s"]
    return Trace(
        key=row["key"],
        result=[pairs.setdefault(pair, len(pairs)) for pair in asked],
        settled_after=range(1, calls + 1),
        settled_order=range(calls),
        error=[bool(error) for error in row["error"]],
        mutating=[bool(one) if known.get("mutating", True) else None for one in row["mutating"]],
        offset_ms=[None] * calls
        if gaps is None
        else [round(1000 * s) for s in accumulate(gap or 0 for gap in gaps)],
        tool_class=row["tool"] if known.get("tools", True) else ["tool"] * calls,
    )


REPEATING = [row for row in evidence_rows() if max(Counter(row["key"]).values()) >= 6]


@pytest.mark.parametrize(
    "known",
    [
        pytest.param({}, id="all that is known"),
        pytest.param({"tools": False}, id="one word for every tool"),
        pytest.param({"tools": False, "mutating": False}, id="and none known to change anything"),
    ],
)
def test_the_bundled_turns_that_repeat_six_times(known: dict[str, bool]) -> None:
    found = Counter((row["label"], classify(features(evidence_trace(row, **known)))[0]) for row in REPEATING)
    assert sum(found.values()) == 111
    assert found["stuck", Kind.STUCK] == 10
    assert found["burst", Kind.BURST] == 1
    assert found["rerun", Kind.RERUN] >= 97
    assert sum(turns for (_, kind), turns in found.items() if kind is Kind.STUCK) == 10
    always_rerun = sum(turns for (label, _), turns in found.items() if LABELS[label] is Kind.RERUN)
    assert always_rerun == 100
