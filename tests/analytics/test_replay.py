"""Replay answers exactly what a guard would have done, or between which bounds it lies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.recording import NEVER
from analytics.replay import Badge, Replay
from guard.policy import SIGNALS, CapPolicy
from tests.analytics.recorded import (
    Ask,
    Finished,
    Loss,
    Retry,
    Settle,
    Step,
    database,
    letters,
    live,
)


def adaptive(soft_cap: int, stuck_at: int, backstop: int, signal: str = "repeat") -> CapPolicy:
    return CapPolicy.adaptive(soft_cap=soft_cap, stuck_at=stuck_at, backstop=backstop, signal=signal)


TOY = ("abc", "abacada", "aaab", "abcdefgh", "ababa", "abcdefghi")
RAN = adaptive(4, 3, 8)


@pytest.fixture(scope="module")
def toy() -> Replay:
    return Replay.of(database([live(letters(text), RAN) for text in TOY]))


@pytest.mark.parametrize("source", ["milestones", "chunks"])
@pytest.mark.parametrize(
    ("text", "policy", "badge", "call", "low", "ran"),
    [
        pytest.param("abc", RAN, "exact", None, NEVER, 3, id="abc runs 3"),
        pytest.param("abacada", RAN, "exact", 5, 5, 4, id="abacada halts at 5"),
        pytest.param("aaab", RAN, "exact", None, NEVER, 4, id="aaab runs 4"),
        pytest.param("abcdefgh", RAN, "exact", None, NEVER, 8, id="abcdefgh runs 8"),
        pytest.param("ababa", RAN, "exact", 5, 5, 4, id="ababa halts at 5"),
        pytest.param("abcdefghi", RAN, "exact", 9, 9, 8, id="abcdefghi halts at 9"),
        pytest.param("abacada", adaptive(4, 2, 8), "exact", 5, 5, 4, id="K 2: abacada halts at 5"),
        pytest.param("ababa", adaptive(4, 2, 8), "exact", 5, 5, 4, id="K 2: ababa halts at 5"),
        pytest.param("ababa", adaptive(4, 4, 8), "bounded", None, 6, 5, id="K 4: ababa, cut at 5"),
        pytest.param("abcdefghi", adaptive(4, 3, 16), "bounded", None, 10, 9, id="H 16: cut at 9"),
        pytest.param("aaab", adaptive(3, 3, 6), "exact", 4, 4, 3, id="(3,3,6): aaab halts at 4"),
        pytest.param("abacada", adaptive(3, 3, 6), "exact", 5, 5, 4, id="(3,3,6): abacada halts at 5"),
        pytest.param("ababa", adaptive(3, 3, 6), "exact", 5, 5, 4, id="(3,3,6): ababa halts at 5"),
        pytest.param("abcdefgh", adaptive(3, 3, 6), "exact", 7, 7, 6, id="(3,3,6): abcdefgh halts at 7"),
        pytest.param("abcdefghi", adaptive(3, 3, 6), "exact", 7, 7, 6, id="(3,3,6): abcdefghi halts at 7"),
        pytest.param("abcdefghi", CapPolicy.hard(6), "exact", 7, 7, 6, id="hard 6 halts at 7"),
        pytest.param("abacada", CapPolicy.disabled(), "exact", None, NEVER, 5, id="disabled: cut at 5"),
        pytest.param("abcdefgh", CapPolicy.disabled(), "exact", None, NEVER, 8, id="disabled: runs 8"),
    ],
)
def test_toy(
    source: str, text: str, policy: CapPolicy, badge: str, call: int | None, low: int, ran: int
) -> None:
    loss = Loss(chunks=True) if source == "milestones" else Loss(milestones=True)
    turn = live(letters(text), RAN)
    replay = Replay.of(database([turn], [loss]))
    halts = replay.halts(policy)
    assert halts.badge(0) is Badge(badge)
    assert halts.call(0) == call
    assert halts.low[0] == low
    assert replay.ran(halts)[0][0] == ran


def test_abacada_that_ran_on_halts_at_7_under_k_4() -> None:
    turn = live(letters("abacada"), RAN, enforce=False)
    halts = Replay.of(database([turn])).halts(adaptive(4, 4, 8))
    assert (halts.badge(0), halts.call(0)) == (Badge.EXACT, 7)


steps = st.one_of(
    st.lists(st.integers(0, 3), min_size=1, max_size=3).map(lambda keys: Ask(tuple(keys))),
    st.integers(0, 40).map(lambda key: Ask((key,))),
    st.tuples(st.integers(1, 40), st.integers(0, 1)).map(lambda pair: Settle(*pair)),
    st.just(Finished()),
)
with_retries = st.lists(st.one_of(steps, st.just(Retry())), min_size=1, max_size=60)
policies = st.one_of(
    st.builds(
        lambda soft, stuck, more, signal: adaptive(soft, stuck, max(soft + more, 1), signal),
        st.integers(0, 20), st.integers(1, 6), st.integers(0, 20), st.sampled_from(SIGNALS),
    ),
    st.integers(1, 30).map(CapPolicy.hard),
    st.just(CapPolicy.disabled()),
)  # fmt: skip
losses = st.one_of(
    st.just(Loss()), st.just(Loss(chunks=True)), st.just(Loss(end=True)), st.just(Loss(milestones=True)),
    st.integers(0, 4).map(lambda chunk: Loss(chunk=chunk)),
    st.integers(0, 4).map(lambda chunk: Loss(chunk=chunk, end=True)),
    st.sampled_from(["no-results", "names-only", "spans-only"]).map(lambda grade: Loss(grade=grade)),
)  # fmt: skip


Case = tuple[Sequence[Step], CapPolicy, Loss, bool]  # script, what ran, what is lost, enforced
cases: st.SearchStrategy[Case] = st.tuples(with_retries, policies, losses, st.booleans())


@settings(max_examples=25, deadline=None)
@given(st.lists(cases, min_size=15, max_size=15), st.lists(policies, min_size=8, max_size=8))
def test_the_bounds_hold_whatever_was_cut_or_lost(recorded: list[Case], asked: list[CapPolicy]) -> None:
    turns = [live(script, ran, enforce=enforce) for script, ran, _, enforce in recorded]
    replay = Replay.of(database(turns, [loss for _, _, loss, _ in recorded]))
    arrived = [int(turn_id) for turn_id in replay.turns.turn_id]
    for policy in asked:
        halts = replay.halts(policy)
        least, most = replay.ran(halts)
        for place, number in enumerate(arrived):
            script, _, loss, enforce = recorded[number]
            truth = live(script, policy)
            assert halts.low[place] <= (truth.halted or NEVER) <= halts.high[place]
            assert least[place] <= truth.calls_that_ran <= most[place]
            if loss in (Loss(), Loss(milestones=True)) and not enforce:
                assert halts.badge(place) is Badge.EXACT
                assert least[place] == most[place]


@settings(max_examples=10, deadline=None)
@given(st.lists(cases, min_size=15, max_size=15))
def test_the_policy_that_ran_reproduces_what_it_logged(
    recorded: list[Case],
) -> None:
    turns = [live(script, ran, enforce=enforce) for script, ran, _, enforce in recorded]
    replay = Replay.of(database(turns))
    for place, turn_id in enumerate(replay.turns.turn_id):
        turn = turns[int(turn_id)]
        halts = replay.halts(turn.policy)
        least, most = replay.ran(halts)
        if turn.would_halt is not None:
            assert halts.call(place) == turn.would_halt
            assert replay.thresholds(turn.policy, halts)[place] == turn.threshold
            assert least[place] == most[place] == turn.ran
        else:
            assert halts.badge(place) is Badge.EXACT
            assert halts.call(place) is None


def test_numbers_past_the_longest_turn_change_nothing() -> None:
    replay = Replay.of(database([live(letters("aaaa"), RAN, enforce=False)]))
    huge = CapPolicy.adaptive(soft_cap=2**53, stuck_at=2**53, backstop=2**53)
    assert replay.halts(huge).call(0) is None
    assert np.all(replay.halts(huge).exact)
