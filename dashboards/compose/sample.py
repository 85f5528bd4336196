"""A sample workload: an agent that does new things, one that gets stuck, and one that never ends."""

from __future__ import annotations

import itertools
import random
import time

from guard import ToolCallGuard
from guard.export import set_up


def main(rounds: int | None = None) -> None:
    """Play a turn a second, for ever or `rounds` times."""
    set_up()
    guard = ToolCallGuard(agent_name="sample", model="scripted")
    for round_ in range(rounds) if rounds is not None else itertools.count():
        calls, distinct = random.choice([(20, 20), (60, 45), (140, 140), (150, 4), (30, 3)])
        if round_ % 200 == 199:
            calls = distinct = 1100
        with guard.turn(user=f"user-{round_ % 7}") as turn:
            for n in range(calls):
                verdict = turn.admit("Bash", {"command": n % distinct})
                if verdict.halted:
                    break
                turn.settle(verdict, result=f"result {n % distinct}")
        time.sleep(1)


if __name__ == "__main__":
    main()
