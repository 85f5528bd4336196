"""What the cases of every framework share: a model that follows a plan, tools and a guard that take notes."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

from guard import ToolCallGuard
from guard.events import Event, LoopDetectedEvent, TurnEnded, TurnStarted

Call = tuple[str, dict[str, Any]]  # tool, arguments
E = TypeVar("E", bound=Event)


class ToolBroke(Exception):  # noqa: N818
    """Raised by the tool `fail`."""


class ModelBroke(Exception):  # noqa: N818
    """Raised by the model where a plan says so."""


class Notes(ToolCallGuard):
    """A guard that keeps its events."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.events: list[Event] = []

    def emit(self, event: Event, *rest: Any) -> None:
        self.events.append(event)
        super().emit(event, *rest)

    def of(self, kind: type[E]) -> list[E]:
        """The events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def started(self) -> list[TurnStarted]:
        return self.of(TurnStarted)

    @property
    def ended(self) -> list[TurnEnded]:
        return self.of(TurnEnded)

    @property
    def loops(self) -> list[LoopDetectedEvent]:
        return self.of(LoopDetectedEvent)


@dataclass(slots=True)
class Script:
    """What the model does, by prompt: replies, each a list of calls or an exception; then it is done."""

    plans: dict[str, Sequence[Sequence[Call] | Exception]] = field(default_factory=dict)

    def reply(self, prompt: str, replies_so_far: int) -> list[tuple[str, Call]]:
        """Calls with their ids, none when the plan is done."""
        plan = self.plans[prompt]
        if replies_so_far >= len(plan):
            return []
        step = plan[replies_so_far]
        if isinstance(step, Exception):
            raise step
        return [(f"call_{prompt}_{replies_so_far}_{place}", call) for place, call in enumerate(step)]


@dataclass(slots=True)
class Tools:
    """What the tools did, by the prompt that their argument `at` names."""

    ran: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    meeting: int = 0  # how many runs `meet` waits for
    _here: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _all: threading.Event = field(default_factory=threading.Event)

    def look(self, at: str, path: str) -> str:
        """Look at a path."""
        self.ran[at].append(path)
        return f"the text of {path}"

    def fail(self, at: str) -> str:
        """Fail."""
        self.ran[at].append("fail")
        raise ToolBroke("it broke")

    def _arrive(self, at: str) -> None:
        self.ran[at].append("meet")
        with self._lock:
            self._here.add(at)
            if len(self._here) >= self.meeting:
                self._all.set()

    def meet(self, at: str) -> str:
        """Return when every run has come here, so that they are open at once."""
        self._arrive(at)
        return f"met: {self._all.wait(30)}"

    async def ameet(self, at: str) -> str:
        """The same without blocking the loop."""
        self._arrive(at)
        while not self._all.is_set():
            await asyncio.sleep(0)
        return "met: True"


@dataclass(slots=True)
class Ran:
    """How a run went, in words that all frameworks share."""

    success: bool  # by the framework's own signs
    error: BaseException | None = None  # what it raised
    asked: list[str] = field(default_factory=list)  # ids of calls in what the run left behind
    answered: list[str] = field(default_factory=list)  # ids of answers there


class Harness:
    """One agent object of a framework under one guard. `run` and `arun` let it work on a prompt."""

    raises_tool_errors = True  # a failing tool ends the run, rather than the model being told
    keeps_refused_reply = True  # the refused calls and their answers stand in what a run leaves behind

    def __init__(self, guard: Notes, script: Script, tools: Tools) -> None:
        self.guard, self.script, self.tools = guard, script, tools

    def run(self, prompt: str) -> Ran:
        raise NotImplementedError

    async def arun(self, prompt: str) -> Ran:
        raise NotImplementedError

    def unwrapped(self, error: BaseException | None) -> BaseException | None:
        """The model's error in what the framework makes of it."""
        return error

    def left_open(self) -> object:
        """What the integration still holds of runs that are over; falsy where it holds nothing."""
        return None

    def at_once(self, way: str, *prompts: str) -> list[Ran]:
        """Runs side by side: threads, or tasks of one loop."""
        if way == "async":

            async def gather() -> list[Ran]:
                return list(await asyncio.gather(*(self.arun(prompt) for prompt in prompts)))

            return asyncio.run(gather())
        with ThreadPoolExecutor(len(prompts)) as pool:
            return list(pool.map(self.run, prompts))

    def one(self, way: str, prompt: str) -> Ran:
        return asyncio.run(self.arun(prompt)) if way == "async" else self.run(prompt)


def cancelled(work: Coroutine[Any, Any, Ran], tools: Tools) -> None:
    """Cancel a run while its tool waits in `meet`."""

    async def main() -> None:
        task = asyncio.ensure_future(work)
        while not tools.ran["main"]:
            await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return
        raise AssertionError("the cancellation did not get out")

    asyncio.run(main())
