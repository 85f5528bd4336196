"""The signals on the golden traces: at which call each first reaches 1, 2, 3 …"""

from __future__ import annotations

import pytest

from guard.signals import BY_NAME, CLASSES, Key, Pair, Signal

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


class Turn:
    """The keys and pairs of a turn, made when they first come."""

    def __init__(self) -> None:
        self.keys: dict[int, Key] = {}
        self.pairs: dict[int, Pair] = {}
        self._given = 0

    def call(self, key: int, pair: int = 0) -> tuple[Key, Pair]:
        """A call's."""
        self._given += 1
        return (
            self.keys.setdefault(key, Key(b"", self._given, 0)),
            self.pairs.setdefault(pair, Pair(self._given)),
        )


def milestones(signal: Signal, trace: list[tuple[int, int]]) -> list[int]:
    """The call at which the level first reached 1, 2 … 6."""
    reached: list[int] = []
    turn = Turn()
    for n, (key_number, pair_number) in enumerate(trace, start=1):
        key, pair = turn.call(key_number, pair_number)
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
def test_what_is_cleared_is_as_new(cls: type[Signal]) -> None:
    signal, fresh, turn, other = cls(), cls(), Turn(), Turn()
    for key, pair in B[1]:
        signal.admit(turn.call(key, pair)[0])
        signal.settle(*turn.call(key, pair))
    cleared: list[Signal | Key | Pair] = [signal, *turn.keys.values(), *turn.pairs.values()]
    for one in cleared:
        one.clear()
    for key, pair in C[1]:
        assert signal.admit(turn.call(key)[0]) == fresh.admit(other.call(key)[0])
        assert signal.settle(*turn.call(key, pair)) == fresh.settle(*other.call(key, pair))


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.name)
def test_calls_seen_together_count_as_one_by_one(cls: type[Signal]) -> None:
    for _, trace in (A, B, C):
        single, together, turn, other = cls(), cls(), Turn(), Turn()
        for key, _ in trace:
            level = single.admit(turn.call(key)[0])
        last = [other.call(key)[0] for key, _ in trace]
        together.see_all(last)
        assert together.level(last[-1]) == level


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.name)
def test_forgetting_never_raises_a_level(cls: type[Signal]) -> None:
    for forgotten in (0, 1, 2):
        whole, forgetful, turn, other = cls(), cls(), Turn(), Turn()
        for n, (key, pair) in enumerate(B[1] + C[1]):
            if n % 4 == 3:
                other.keys.pop(forgotten, None)
                other.pairs.pop(forgotten, None)
            assert forgetful.admit(other.call(key)[0]) <= whole.admit(turn.call(key)[0])
            found, expected = forgetful.settle(*other.call(key, pair)), whole.settle(*turn.call(key, pair))
            assert (found or 0) <= (expected or 0)


@pytest.mark.parametrize(("between", "level"), [(19, 1), (18, 2)])
def test_recent_repeat_forgets_what_is_twenty_calls_back(between: int, level: int) -> None:
    signal, turn = BY_NAME["recent_repeat"](), Turn()
    assert [signal.admit(turn.call(key)[0]) for key in (0, *range(1, between + 1), 0)][-1] == level
