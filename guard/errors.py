"""Every error turncap raises on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from guard.verdict import Verdict


class TurncapError(Exception):
    """The parent of all: catching it catches everything turncap raises on purpose."""


class PolicyError(TurncapError, ValueError):
    """A setting or argument that cannot be accepted.

    `setting` is its name, `given` what was found, `accepted` what would do.
    """

    def __init__(self, setting: str, given: object, accepted: str) -> None:
        self.setting = setting
        self.given = given
        self.accepted = accepted
        super().__init__(f"{setting}: got {_shown(given)}; accepted: {accepted}")


class TurnHalted(TurncapError):  # noqa: N818 - the public name says what happened
    """Raised by `Verdict.raise_for_halt()` for callers who prefer an exception; carries the verdict."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        super().__init__(verdict.message)


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - an error message must not fail on what it describes
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else text[:79] + "…"
