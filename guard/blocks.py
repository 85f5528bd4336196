"""The `with` blocks in which a turn and its span are current: a nested turn names it as its parent."""

from __future__ import annotations

from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING, Any

from guard.errors import TurncapError
from guard.telemetry import attach, detach
from guard.turn import Turn

if TYPE_CHECKING:
    from guard.tool_call_guard import ToolCallGuard

_current: ContextVar[Turn | None] = ContextVar("turncap_turn", default=None)


class TurnBlock:
    """What `ToolCallGuard.turn` returns: enter it with `with` or `async with`."""

    def __init__(self, guard: ToolCallGuard, circumstances: dict[str, Any]) -> None:
        self._guard, self._circumstances = guard, circumstances
        self._current: CurrentTurn | None = None

    def __enter__(self) -> Turn:
        if self._current is not None:
            raise TurncapError("guard.turn(...): got a block that was entered before; make one a turn")
        circumstances = dict(self._circumstances)
        circumstances.setdefault("parent", current_turn())
        self._current = CurrentTurn(self._guard.start_turn(**circumstances))
        return self._current.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._current is not None:
            self._current.__exit__(kind, error, trace)
            self._current.turn.end(error=error)

    async def __aenter__(self) -> Turn:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


class CurrentTurn:
    """What `ToolCallGuard.use_turn` returns: the turn and its span are current in the `with` block."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self._token: Token[Turn | None] | None = None
        self._span_token: object = None

    def __enter__(self) -> Turn:
        self._token = _current.set(self.turn)
        if self.turn.span is not None:
            self._span_token = attach(self.turn.span)
        return self.turn

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        token, self._token = self._token, None
        if token is None:
            return
        try:
            _current.reset(token)
        except ValueError:  # a generator closed elsewhere: its context is gone, and what was current with it
            return
        if self._span_token is not None:
            detach(self._span_token)


def current_turn() -> Turn | None:
    """The turn of the innermost block that is open here and has not ended."""
    turn = _current.get()
    return turn if turn is not None and turn.outcome is None else None
