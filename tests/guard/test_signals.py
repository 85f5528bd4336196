"""The signals on the golden traces: at which call each first reaches 1, 2, 3 …"""

from __future__ import annotations

import json

import pytest

from guard.signals import BY_NAME, CLASSES, Signal

# Keys and (key, result) pairs of each call; every call settles before the next is asked.
A = (
    "T1 T2 T3 T4 T5 T",
    [(0, 0), (1, 1), (0, 2), (2, 3), (0, 4), (3, 5), (0, 6), (4, 7), (0, 8), (5, 9), (0, 10)],
)
B = ("R W six times", [(i % 2, i % 2) for i in range(12)])
C = (
    "a b P P P c P P P, the last with a new result",
    [(0, 0), (1, 1), (2, 2), (2, 2), (2, 2), (3, 3), (2, 2), (2, 2), (2, 4)],
)
GOLDEN = {
    "repeat": ([1, 3, 5, 7, 9, 11], [1, 3, 5, 7, 9, 11], [1, 4, 5, 7, 8, 9]),
    "recent_repeat": ([1, 3, 5, 7, 9, 11], [1, 3, 5, 7, 9, 11], [1, 4, 5, 7, 8, 9]),
    "novelty_repeat": ([1], [1, 4, 6, 8, 10, 12], [1, 4, 5]),
    "same_result_repeat": ([1], [1, 3, 5, 7, 9, 11], [1, 4, 5, 7, 8]),
    "no_progress": ([], [3, 4, 5, 6, 7, 8], [4, 5]),
}


def milestones(signal: Signal, trace: list[tuple[int, int]]) -> list[int]:
    """The call at which the level first reached 1, 2 … 6."""
    reached: list[int] = []
    for n, (key, pair) in enumerate(trace, start=1):
        level = signal.admit(key)
        settled = signal.settle(key, pair)
        if signal.of_results:
            assert settled is not None
            level = settled
        while level > len(reached) and len(reached) < 6:
            reached.append(n)
    return reached


@pytest.mark.parametrize("name", list(GOLDEN))
@pytest.mark.parametrize("trace", range(3), ids=[A[0], B[0], C[0]])
def test_golden_milestones(name: str, trace: int) -> None:
    assert milestones(BY_NAME[name](), (A, B, C)[trace][1]) == GOLDEN[name][trace]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.name)
def test_state_goes_through_json_at_any_point(cls: type[Signal]) -> None:
    for _, trace in (A, B, C):
        for cut in range(len(trace)):
            whole, carried = cls(), cls()
            for key, pair in trace[:cut]:
                whole.admit(key)
                whole.settle(key, pair)
            carried.from_state(json.loads(json.dumps(whole.to_state())))
            for key, pair in trace[cut:]:
                assert carried.admit(key) == whole.admit(key)
                assert carried.settle(key, pair) == whole.settle(key, pair)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.name)
def test_a_cleared_signal_is_as_new(cls: type[Signal]) -> None:
    signal = cls()
    milestones(signal, B[1])
    signal.clear()
    assert milestones(signal, C[1]) == milestones(cls(), C[1])


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.name)
def test_forgetting_never_raises_a_level(cls: type[Signal]) -> None:
    for key_forgotten, pair_forgotten in ((0, 0), (1, 1), (2, 2)):
        whole, forgetful = cls(), cls()
        for n, (key, pair) in enumerate(B[1] + C[1]):
            if n % 4 == 3:
                forgetful.forget_key(key_forgotten)
                forgetful.forget_pair(pair_forgotten)
            assert forgetful.admit(key) <= whole.admit(key)
            assert (forgetful.settle(key, pair) or 0) <= (whole.settle(key, pair) or 0)


def test_recent_repeat_forgets_what_is_twenty_calls_back() -> None:
    signal = BY_NAME["recent_repeat"]()
    assert [signal.admit(key) for key in (0, *range(1, 20), 0)][-1] == 1
    signal = BY_NAME["recent_repeat"]()
    assert [signal.admit(key) for key in (0, *range(1, 19), 0)][-1] == 2
