"""The cases every framework must stand, each with the sync and the async way of running it.

A framework's test module makes a child of `Cases` that says how to build its harness.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from guard import Threshold, TurnHalted
from tests.integrations.world import (
    Call,
    Harness,
    ModelBroke,
    Notes,
    Ran,
    Script,
    ToolBroke,
    Tools,
    cancelled,
)


def looks(prompt: str, *paths: object) -> list[Call]:
    """Calls of the tool `look`."""
    return [("look", {"at": prompt, "path": str(path)}) for path in paths]


def one_by_one(prompt: str, *paths: object) -> list[list[Call]]:
    """Replies of one call each."""
    return [looks(prompt, path) for path in paths]


class Cases:
    """Each test is a row of the printed table."""

    harness: type[Harness]

    @pytest.fixture(params=["sync", "async"])
    def way(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    @pytest.fixture(autouse=True)
    def _nothing_is_left(self) -> Iterator[None]:
        self.built: list[Harness] = []
        yield
        for harness in self.built:
            assert not harness.left_open()
            assert len(harness.guard.started) == len(harness.guard.ended)
            assert harness.guard.current_turn() is None

    def build(self, plans: dict[str, Any], **settings: Any) -> tuple[Any, Notes, Tools]:
        guard, tools = Notes(**settings), Tools()
        harness = self.harness(guard, Script(plans), tools)
        self.built.append(harness)
        return harness, guard, tools

    def unanswered(self, ran: Ran) -> set[str]:
        return set(ran.asked) - set(ran.answered)

    def test_150_diverse_calls_run(self, way: str) -> None:
        harness, guard, tools = self.build({"main": one_by_one("main", *range(150))})
        ran = harness.one(way, "main")
        (ended,) = guard.ended
        assert ran.success
        assert len(tools.ran["main"]) == 150
        assert (ended.outcome, ended.calls, ended.ran, ended.settled) == ("completed", 150, 150, 150)
        assert (ended.refused, ended.errors, guard.loops, guard.faults) == (0, 0, [], {})

    def test_a_stuck_run_is_halted_at_the_right_call(self, way: str) -> None:
        """97 diverse calls, then one call again and again: its sixth is call 103."""
        harness, guard, tools = self.build({"main": one_by_one("main", *range(97), *["same"] * 20)})
        ran = harness.one(way, "main")
        (loop,), (ended,) = guard.loops, guard.ended
        assert not ran.success
        assert len(tools.ran["main"]) == 102
        assert (loop.threshold, loop.call_number, loop.total, loop.level) == ("soft-stuck", 103, 103, 6)
        assert (loop.enforced, loop.repeat_tool) == (True, "look")
        assert (ended.outcome, ended.calls, ended.ran, ended.refused) == ("halted", 103, 102, 1)
        assert ended.settled == 102
        assert self.unanswered(ran) == set()
        assert guard.faults == {}

    def test_an_explicit_cap_of_5_refuses_the_6th_call(self, way: str) -> None:
        harness, guard, tools = self.build({"main": one_by_one("main", *range(9))}, max_tool_calls=5)
        ran = harness.one(way, "main")
        (loop,), (ended,) = guard.loops, guard.ended
        assert not ran.success
        assert tools.ran["main"] == ["0", "1", "2", "3", "4"]
        assert (loop.threshold, loop.call_number, loop.limit) == (Threshold.EXPLICIT_HARD, 6, 5)
        assert (ended.outcome, ended.ran, ended.refused) == ("halted", 5, 1)
        assert self.unanswered(ran) == set()

    def test_exactly_the_cap_is_allowed(self, way: str) -> None:
        harness, guard, tools = self.build({"main": one_by_one("main", *range(5))}, max_tool_calls=5)
        assert harness.one(way, "main").success
        assert len(tools.ran["main"]) == 5
        assert guard.ended[0].outcome == "completed"

    def test_a_batch_over_the_cap_is_refused_whole(self, way: str) -> None:
        plan = [looks("main", 0, 1, 2), looks("main", 3, 4, 5, 6)]
        harness, guard, tools = self.build({"main": plan}, max_tool_calls=5)
        ran = harness.one(way, "main")
        (loop,), (ended,) = guard.loops, guard.ended
        assert not ran.success
        assert sorted(tools.ran["main"]) == ["0", "1", "2"]
        assert (loop.call_number, loop.total) == (6, 7)
        assert (ended.outcome, ended.batches, ended.ran, ended.refused) == ("halted", 2, 3, 4)
        assert self.unanswered(ran) == set()
        if harness.keeps_refused_reply:
            assert len(ran.asked) == 7

    def test_two_concurrent_runs_of_one_agent_are_two_turns(self, way: str) -> None:
        plans = {
            name: [[("meet", {"at": name})], *one_by_one(name, *range(more))]
            for name, more in (("short", 3), ("long", 8))
        }
        harness, guard, tools = self.build(plans, max_tool_calls=5)
        tools.meeting = 2
        short, long = harness.at_once(way, "short", "long")
        assert (short.success, long.success) == (True, False)
        assert (len(tools.ran["short"]), len(tools.ran["long"])) == (4, 5)
        assert sorted((ended.outcome, ended.ran) for ended in guard.ended) == [
            ("completed", 4),
            ("halted", 5),
        ]
        assert [started.parent_id for started in guard.started] == [None, None]
        assert guard.faults == {}

    def test_runs_one_after_the_other_share_nothing(self, way: str) -> None:
        plans = {"first": one_by_one("first", *range(9)), "second": one_by_one("second", *range(4))}
        harness, guard, _ = self.build(plans, max_tool_calls=5)
        first, second = harness.one(way, "first"), harness.one(way, "second")
        assert (first.success, second.success) == (False, True)
        assert [(ended.outcome, ended.ran) for ended in guard.ended] == [("halted", 5), ("completed", 4)]

    def test_shadow_records_and_lets_run(self, way: str) -> None:
        plan = one_by_one("main", *range(9))
        harness, guard, tools = self.build({"main": plan}, max_tool_calls=5, mode="shadow")
        ran = harness.one(way, "main")
        (loop,), (ended,) = guard.loops, guard.ended
        assert ran.success
        assert len(tools.ran["main"]) == 9
        assert (loop.threshold, loop.enforced, loop.call_number) == ("explicit-hard", False, 6)
        assert (ended.outcome, ended.ran, ended.refused) == ("completed", 9, 0)

    def test_a_failing_tool_is_settled_as_an_error(self, way: str) -> None:
        plan = [looks("main", 0), [("fail", {"at": "main"})]]
        harness, guard, _ = self.build({"main": plan})
        ran = harness.one(way, "main")
        (ended,) = guard.ended
        if harness.raises_tool_errors:
            assert type(ran.error) is ToolBroke
            assert ended.outcome == "errored"
        else:
            assert ran.success
            assert ended.outcome == "completed"
        assert (ended.calls, ended.settled, ended.errors) == (2, 2, 1)

    def test_the_model_s_error_passes_unchanged(self, way: str) -> None:
        broke = ModelBroke("no answer")
        harness, guard, _ = self.build({"main": [looks("main", 0), broke]})
        ran = harness.one(way, "main")
        assert harness.unwrapped(ran.error) is broke
        assert [(ended.outcome, ended.settled) for ended in guard.ended] == [("errored", 1)]

    def test_a_child_agent_is_a_child_turn(self, way: str) -> None:
        plans = {
            "main": [*one_by_one("main", 0, 1), [("ask", {"prompt": "child"})], *one_by_one("main", 2)],
            "child": one_by_one("child", *range(4)),
        }
        harness, guard, tools = self.build(plans, max_tool_calls=5)
        assert harness.one(way, "main").success
        main, child = guard.started
        assert (main.parent_id, child.parent_id) == (None, main.turn_id)
        calls = {ended.turn_id: (ended.outcome, ended.calls) for ended in guard.ended}
        assert calls == {main.turn_id: ("completed", 4), child.turn_id: ("completed", 4)}
        assert (len(tools.ran["main"]), len(tools.ran["child"])) == (3, 4)

    def test_a_halted_child_does_not_halt_its_parent_s_turn(self, way: str) -> None:
        plans = {
            "main": [[("ask", {"prompt": "child"})], *one_by_one("main", 2)],
            "child": one_by_one("child", *range(9)),
        }
        harness, guard, tools = self.build(plans, max_tool_calls=5)
        ran = harness.one(way, "main")
        main, child = guard.started
        outcomes = {ended.turn_id: ended.outcome for ended in guard.ended}
        assert len(tools.ran["child"]) == 5
        assert outcomes[child.turn_id] == "halted"
        if ran.success:  # the parent's model was told
            assert outcomes[main.turn_id] == "completed"
        else:  # the child's halt got out of the tool, as its errors do there
            assert isinstance(ran.error, TurnHalted)
            assert outcomes[main.turn_id] == "errored"

    def test_a_cancelled_run_is_aborted(self) -> None:
        harness, guard, tools = self.build({"main": [[("meet", {"at": "main"})]]})
        tools.meeting = 2
        cancelled(harness.arun("main"), tools)
        assert [(ended.outcome, ended.ran) for ended in guard.ended] == [("aborted", 1)]
