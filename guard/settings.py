"""Arguments and environment -> settings. An argument beats the environment, setting by setting."""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from hashlib import blake2b
from secrets import token_bytes
from typing import Any, Final

from guard.errors import PolicyError
from guard.policy import LARGEST, CapPolicy, Mode

log = logging.getLogger("turncap")

# Environment variable -> argument.
VARIABLES: Final = {
    "TURNCAP_MAX_TOOL_CALLS_PER_TURN": "max_tool_calls",
    "TURNCAP_SOFT_CAP": "soft_cap",
    "TURNCAP_STUCK_AT": "stuck_at",
    "TURNCAP_BACKSTOP_MULTIPLIER": "backstop_multiplier",
    "TURNCAP_BACKSTOP": "backstop",
    "TURNCAP_SIGNAL": "signal",
    "TURNCAP_MODE": "mode",
    "TURNCAP_HOLDOUT_RATE": "holdout_rate",
    "TURNCAP_HOLDOUT_SALT": "holdout_salt",
    "TURNCAP_BACKSTOP_HOLDOUT_RATE": "backstop_holdout_rate",
    "TURNCAP_DIGEST_SECRET": "digest_secret",
    "TURNCAP_EVENTS": "events",
}
ADAPTIVE: Final = ("soft_cap", "stuck_at", "backstop_multiplier", "backstop", "signal")
COUNTS: Final = ("max_tool_calls", "soft_cap", "stuck_at", "backstop_multiplier", "backstop")
POLICY: Final = ("max_tool_calls", *ADAPTIVE)
EVENTS: Final = ("both", "logs", "spans")
_OF_PROCESS: Final = token_bytes(32)  # the digests' key where none is set
_warned: set[str] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a guard runs, merged and checked."""

    policy: CapPolicy
    mode: Mode
    holdout_rate: float
    backstop_holdout_rate: float
    holdout_salt: str
    digest_secret: bytes  # at most 64 bytes, as BLAKE2b takes it
    events: str


def resolve(
    arguments: Mapping[str, Any], environ: Mapping[str, str], policy: CapPolicy | None = None
) -> Settings:
    """The settings in force. `policy` stands for all of the policy's settings, wherever they come from.

    Raises:
        PolicyError: a value that is not accepted, or two that exclude each other.
    """
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}  # argument -> what the caller knows the setting by
    for variable, name in VARIABLES.items():
        given = arguments.get(name)
        if policy is not None and name in POLICY:
            if given is not None:
                raise PolicyError(name, given, "either policy=… or the policy's own settings, not both")
            continue
        text = environ.get(variable, "").strip()
        if given is not None:
            values[name], sources[name] = given, name
        elif text:
            values[name], sources[name] = (_integer(variable, text) if name in COUNTS else text), variable
    _warn_of_unknown(environ)
    return Settings(
        policy=_policy(values, sources) if policy is None else policy,
        mode=Mode(_word(values, sources, "mode", tuple(Mode))),
        holdout_rate=_rate(values, sources, "holdout_rate"),
        backstop_holdout_rate=_rate(values, sources, "backstop_holdout_rate"),
        holdout_salt=str(values.get("holdout_salt", "turncap")),
        digest_secret=_secret(values, sources),
        events=_word(values, sources, "events", EVENTS),
    )


def _policy(values: Mapping[str, Any], sources: Mapping[str, str]) -> CapPolicy:
    adaptive = [name for name in ADAPTIVE if name in values]
    if "max_tool_calls" in values:
        if adaptive:
            both = [sources["max_tool_calls"], *(sources[name] for name in adaptive)]
            raise PolicyError(
                " and ".join(both),
                {sources[name]: values[name] for name in ("max_tool_calls", *adaptive)},
                f"either {both[0]} (an explicit cap) or settings of the adaptive rule",
            )
        most = values["max_tool_calls"]
        if type(most) is not int or most > LARGEST:
            raise PolicyError(
                sources["max_tool_calls"], most, f"an integer up to {LARGEST}; 0 or less switches the cap off"
            )
        return CapPolicy.hard(most) if most > 0 else CapPolicy.disabled()
    try:
        return CapPolicy.adaptive(**{name: values[name] for name in adaptive})
    except PolicyError as error:
        words = error.setting.split(" ")
        raise PolicyError(" ".join(sources.get(w, w) for w in words), error.given, error.accepted) from None


def _integer(variable: str, text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,20}", text):
        raise PolicyError(variable, text, "a decimal integer")
    return int(text)


def _word(values: Mapping[str, Any], sources: Mapping[str, str], name: str, accepted: tuple[str, ...]) -> str:
    given = values.get(name, accepted[0])
    if not isinstance(given, str) or given not in accepted:
        raise PolicyError(sources[name], given, " or ".join(accepted))
    return str(given)


def _rate(values: Mapping[str, Any], sources: Mapping[str, str], name: str) -> float:
    given = values.get(name, 0)
    rate = None
    if isinstance(given, str) and sources[name] != name:  # from the environment
        try:
            rate = Decimal(given)
        except InvalidOperation:
            rate = None
    elif isinstance(given, int | float | Decimal) and not isinstance(given, bool):
        rate = Decimal(given)
    if rate is None or not rate.is_finite() or not 0 <= rate <= 1:
        raise PolicyError(sources[name], given, "a decimal from 0 to 1")
    return float(rate)


def _secret(values: Mapping[str, Any], sources: Mapping[str, str]) -> bytes:
    given = values.get("digest_secret")
    if given is None:
        return _OF_PROCESS
    if isinstance(given, str):
        given = given.encode("utf-8", "surrogatepass")
    if not isinstance(given, bytes) or not given:
        raise PolicyError(sources["digest_secret"], type(given), "text or bytes, not empty")
    return given if len(given) <= 64 else blake2b(given).digest()


def _warn_of_unknown(environ: Mapping[str, str]) -> None:
    for variable in environ:
        if variable.startswith("TURNCAP_") and variable not in VARIABLES and variable not in _warned:
            _warned.add(variable)
            near = difflib.get_close_matches(variable, VARIABLES, n=1, cutoff=0)
            log.warning("%s is no setting of turncap and was ignored; the nearest is %s", variable, near[0])
