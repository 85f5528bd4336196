"""Drive one package over traces of tool calls, in that package's own environment (standard library alone).

    python peer_driver.py NAME < request.json

A trace is a list of [tool, arguments, result, failed]. The answer: for each trace the number of the call
that did not run (null: all ran), and the CPU time of a call over the trace `cost`.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from statistics import median
from typing import Any

Call = Callable[[str, Any, Any, bool], None]  # raises `Stop` or the package's own exception where it halts


class Stop(Exception):  # noqa: N818 - not an error
    """The package said that this call, or whatever comes next, must not run."""


def turncap(stack: ExitStack, **settings: Any) -> Call:
    """The guard: asked before a call runs, told what it returned."""
    from guard import CapPolicy, ToolCallGuard

    policy = CapPolicy.adaptive(**settings)
    turn = stack.enter_context(ToolCallGuard(policy=policy).turn())

    def call(tool: str, args: Any, result: Any, failed: bool) -> None:
        verdict = turn.admit(tool, args)
        if verdict.halted:
            raise Stop
        turn.settle(verdict, **{"error" if failed else "result": result})

    return call


def agentbelt_loop(stack: ExitStack) -> Call:
    """Told of a call and its result, then asked; what it finds stops the next call."""
    from agentbelt_loop import LoopDetector, LoopPolicy

    detector = LoopDetector(LoopPolicy())

    def call(tool: str, args: Any, result: Any, failed: bool) -> None:
        detector.record("s", tool=tool, args=args, result=result)
        detector.check("s")

    return call


def agent_watchdog(stack: ExitStack) -> Call:
    """Told of each call in a watched block; no money or time limit."""
    from agent_watchdog import AgentWatchdog

    watchdog = AgentWatchdog(max_budget_usd=1e9, timeout_seconds=None)
    stack.enter_context(watchdog.watch(run_id="s"))

    def call(tool: str, args: Any, result: Any, failed: bool) -> None:
        watchdog.record_tool_call(tool, args=args, output=result)

    return call


def agent_budget_guard_py(stack: ExitStack) -> Call:
    """A block a call; it looks before the call runs."""
    from agentguard import Guard

    guard = Guard(use_config=False)
    stack.enter_context(guard)

    def call(tool: str, args: Any, result: Any, failed: bool) -> None:
        with guard.step() as step, step.tool(tool, args):
            pass

    return call


def runbound(stack: ExitStack) -> Call:
    """Tools wrapped, a session a turn. Its default only notifies: here a loop is to be broken."""
    import runbound as package

    package.init(on_anomaly="raise", on_loop="break")
    stack.callback(package.reset)
    stack.enter_context(package.session(f"s{time.monotonic_ns()}"))
    tools: dict[str, Any] = {}

    def call(tool: str, args: Any, result: Any, failed: bool) -> None:
        wrapped = tools.get(tool)
        if wrapped is None:
            wrapped = tools[tool] = package.tool(name=tool)(lambda args: None)
        wrapped(args)

    return call


def loopbrake(stack: ExitStack) -> Call:
    """A wrapped tool in a task. It watches until it was calibrated on 19 good tasks of one's own."""
    import loopbrake as package

    brake = package.watch("bench", home=stack.enter_context(tempfile.TemporaryDirectory()))
    stack.enter_context(brake.task())
    told: list[Any] = [None]
    tools: dict[str, Any] = {}

    def call(tool: str, args: Any, result: Any, failed: bool) -> None:
        told[0] = result
        wrapped = tools.get(tool)
        if wrapped is None:
            wrapped = tools[tool] = brake.tool(lambda args: told[0], name=tool)
        wrapped(args)

    return call


def trajectory_fuse(stack: ExitStack) -> Call:
    """Asked before a call, told of it after."""
    from trajectory_fuse import Action, AgentFuse

    fuse = stack.enter_context(AgentFuse())

    def call(tool: str, args: Any, result: Any, failed: bool) -> None:
        if fuse.check(tool, args) is not None:
            raise Stop
        fuse.observe(Action(tool=tool, args=args, result=result, success=not failed))

    return call


DRIVERS: dict[str, Callable[..., Call]] = {
    "turncap": turncap,
    "agentbelt-loop": agentbelt_loop,
    "agent-watchdog": agent_watchdog,
    "agent-budget-guard-py": agent_budget_guard_py,
    "runbound": runbound,
    "loopbrake": loopbrake,
    "trajectory-fuse": trajectory_fuse,
}


def halting(make: Callable[[ExitStack], Call], trace: list[Any]) -> int | None:
    """The number of the call that did not run."""
    number = 0
    try:
        with ExitStack() as stack:
            call = make(stack)
            for tool, args, result, failed in trace:
                number += 1
                call(tool, args, result, failed)
        return None
    except Exception as error:  # noqa: BLE001 - each package has exceptions of its own
        # Those that look after the call has run stop the one after it.
        after = type(error).__module__.startswith(("agentbelt_loop", "agent_watchdog", "trajectory_fuse"))
        return number + 1 if after else number


def cost(make: Callable[[ExitStack], Call], trace: list[Any], rounds: int) -> float:
    """Median µs of CPU a call."""
    found = []
    for _ in range(rounds):
        with ExitStack() as stack:
            call = make(stack)
            began = time.thread_time()
            for tool, args, result, failed in trace:
                call(tool, args, result, failed)
            found.append((time.thread_time() - began) / len(trace) * 1e6)
    return median(found)


def main() -> None:
    """Read the request, print the answer."""
    logging.disable(logging.CRITICAL)
    request = json.load(sys.stdin)
    driver = DRIVERS[sys.argv[1]]

    def make(stack: ExitStack) -> Call:
        return driver(stack, **request.get("settings", {}))

    answer = {
        "halts": {name: halting(make, trace) for name, trace in request["traces"].items()},
        "cost_us": cost(make, request["cost"], request["rounds"]),
    }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
