"""The thresholds of a turn, and what they decide: the behaviour matrix, pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import Self

from guard.errors import PolicyError

SOFT_CAP = 100
STUCK_AT = 6
BACKSTOP_MULTIPLIER = 10
LARGEST = 2**53  # every count stays exact in a double
SIGNALS = ("repeat", "recent_repeat", "novelty_repeat", "same_result_repeat", "no_progress")


class Threshold(StrEnum):
    """Which limit fired."""

    SOFT_STUCK = "soft-stuck"
    BACKSTOP = "backstop"
    EXPLICIT_HARD = "explicit-hard"


class PolicyKind(StrEnum):
    """What kind of cap a policy is."""

    ADAPTIVE = "adaptive"
    HARD = "hard"
    DISABLED = "disabled"


class Mode(StrEnum):
    """Whether a halt is carried out, or only recorded."""

    ENFORCE = "enforce"
    SHADOW = "shadow"


@dataclass(frozen=True, slots=True, kw_only=True)
class CapPolicy:
    """The thresholds, checked when made. Make one with `adaptive`, `hard` or `disabled`.

    Counts are calls. `soft_cap`, `stuck_at`, `backstop` and `signal` are None unless the kind is
    adaptive, `hard_cap` is None unless it is hard.
    """

    kind: PolicyKind
    soft_cap: int | None = None
    stuck_at: int | None = None
    backstop: int | None = None
    signal: str | None = None
    hard_cap: int | None = None

    @classmethod
    def adaptive(
        cls,
        *,
        soft_cap: int | None = None,
        stuck_at: int | None = None,
        backstop_multiplier: int | None = None,
        backstop: int | None = None,
        signal: str | None = None,
    ) -> Self:
        """Halt past `soft_cap` when the signal's level is at `stuck_at`, and always past the backstop.

        None takes the default: 100, 6, ten times the soft cap, `repeat`.

        Raises:
            PolicyError: a value of the wrong type or range, multiplier and backstop together, or a
                soft cap of 0 without a backstop.
        """
        cap = SOFT_CAP if soft_cap is None else whole("soft_cap", soft_cap, least=0)
        stuck = STUCK_AT if stuck_at is None else whole("stuck_at", stuck_at, least=1)
        if backstop is not None and backstop_multiplier is not None:
            raise PolicyError(
                "backstop and backstop_multiplier",
                (backstop, backstop_multiplier),
                "one of the two: the backstop as a number of calls, or as a multiple of the soft cap",
            )
        if backstop is not None:
            limit = whole("backstop", backstop, least=max(cap, 1))
        else:
            times = BACKSTOP_MULTIPLIER
            if backstop_multiplier is not None:
                times = whole("backstop_multiplier", backstop_multiplier, least=1)
            if cap == 0:
                raise PolicyError(
                    "soft_cap", 0, "0 together with a backstop of its own, such as backstop=1000"
                )
            limit = times * cap
            if limit > LARGEST:
                raise PolicyError(
                    "backstop_multiplier", times, f"a product with soft_cap of at most {LARGEST}"
                )
        name = SIGNALS[0] if signal is None else signal
        if name not in SIGNALS:
            raise PolicyError("signal", signal, "one of " + ", ".join(SIGNALS))
        return cls(kind=PolicyKind.ADAPTIVE, soft_cap=cap, stuck_at=stuck, backstop=limit, signal=name)

    @classmethod
    def hard(cls, max_tool_calls: int) -> Self:
        """Halt past `max_tool_calls` (at least 1), whatever the calls are."""
        return cls(kind=PolicyKind.HARD, hard_cap=whole("max_tool_calls", max_tool_calls, least=1))

    @classmethod
    def disabled(cls) -> Self:
        """Count and record, halt never."""
        return cls(kind=PolicyKind.DISABLED)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The policy that `text` is the canonical form of.

        Raises:
            PolicyError: the text is no canonical form.
        """
        try:
            kind, *pairs = text.split()
            fields = dict(pair.split("=", 1) for pair in pairs)
            if kind == PolicyKind.DISABLED and not fields:
                return cls.disabled()
            if kind == PolicyKind.HARD and set(fields) == {"hard_cap"}:
                return cls.hard(int(fields["hard_cap"]))
            if kind == PolicyKind.ADAPTIVE and set(fields) == {"signal", "soft_cap", "stuck_at", "backstop"}:
                numbers = {name: int(fields[name]) for name in ("soft_cap", "stuck_at", "backstop")}
                return cls.adaptive(signal=fields["signal"], **numbers)
        except ValueError as error:
            if isinstance(error, PolicyError):
                raise
        raise PolicyError(
            "policy", text, "a text such as 'adaptive signal=repeat soft_cap=100 stuck_at=6 backstop=1000'"
        )

    @property
    def text(self) -> str:
        """The canonical form: what `hash` is taken of, and what a candidate is named by."""
        if self.kind is PolicyKind.ADAPTIVE:
            return (
                f"adaptive signal={self.signal} soft_cap={self.soft_cap} "
                f"stuck_at={self.stuck_at} backstop={self.backstop}"
            )
        if self.kind is PolicyKind.HARD:
            return f"hard hard_cap={self.hard_cap}"
        return "disabled"

    @property
    def hash(self) -> str:
        """The first 16 hex digits of BLAKE2b of the canonical text."""
        return blake2b(self.text.encode()).hexdigest()[:16]

    def decide(self, total: int, level: int | None) -> Threshold | None:
        """The threshold that halts a turn at this total and level, or None to allow.

        Both include the call being asked about where the signal counts requests. A level of None
        (unknown) never gates.
        """
        if self.kind is PolicyKind.ADAPTIVE:
            if total <= self.soft_cap:  # type: ignore[operator]  # an adaptive policy has all three
                return None
            if total > self.backstop:  # type: ignore[operator]
                return Threshold.BACKSTOP
            if level is not None and level >= self.stuck_at:  # type: ignore[operator]
                return Threshold.SOFT_STUCK
            return None
        if self.hard_cap is not None and total > self.hard_cap:
            return Threshold.EXPLICIT_HARD
        return None

    def limit_of(self, threshold: Threshold) -> int | None:
        """The number of calls that was passed when `threshold` fired."""
        return {
            Threshold.SOFT_STUCK: self.soft_cap,
            Threshold.BACKSTOP: self.backstop,
            Threshold.EXPLICIT_HARD: self.hard_cap,
        }[threshold]

    def next_limit(self, total: int) -> int | None:
        """The limit ahead of a turn with this total (the last one when all are passed)."""
        if self.soft_cap is not None and total <= self.soft_cap:
            return self.soft_cap
        return self.backstop if self.kind is PolicyKind.ADAPTIVE else self.hard_cap


def whole(setting: str, value: object, *, least: int) -> int:
    """`value` as an int between `least` and 2**53; bool, float and text are refused.

    Raises:
        PolicyError: it is something else.
    """
    if type(value) is not int or not least <= value <= LARGEST:
        raise PolicyError(setting, value, f"an integer from {least} to {LARGEST}")
    return value
