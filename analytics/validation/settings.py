"""The tolerances, prices and grids of `validation.toml`, checked when read."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from analytics.errors import InputError
from analytics.paths import unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Largest shares that are accepted, 0 … 1; `saving` is a share of the calls made in stuck turns."""

    backstop: float
    false_halts: float
    wrong_halts: float
    saving: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Costs in calls: of one call in a stuck turn, of one wrong halt, and other prices to show."""

    call: float
    wrong_halt: float
    also_shown: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The values that are tried, ascending: m as multiples of S, K and S in calls."""

    multiplier: tuple[int, ...]
    stuck_at: tuple[int, ...]
    soft_cap: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What must be there before a word is said."""

    least_halts: int
    least_clusters: int
    sampled_by_head: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything of `validation.toml`."""

    tolerance: Tolerance
    price: Price
    grid: Grid
    evidence: Evidence


def read_settings(path: Path | None = None) -> Settings:
    """The settings of `path`, or those that come with turncap.

    Raises:
        InputError: the file cannot be read, or a setting is missing, unknown or out of range.
    """
    name = str(path) if path else "validation.toml"
    try:
        source = path if path else files("analytics") / "validation.toml"
        given = tomllib.loads(source.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(name, error, "give a file like validation.toml") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name}: not TOML: {error}") from None
    sections = {"tolerance": Tolerance, "price": Price, "grid": Grid, "evidence": Evidence}
    for section in given.keys() - sections.keys():
        raise InputError(f"{name}: [{section}] is not known; accepted: {', '.join(sections)}")
    return Settings(**{key: _section(name, key, kind, given.get(key)) for key, kind in sections.items()})


def _section(name: str, section: str, kind: type[Any], given: object) -> Any:
    if not isinstance(given, Mapping):
        raise InputError(f"{name}: section [{section}] is missing; copy it from validation.toml")
    known = {field.name: str(field.type) for field in fields(kind)}
    for key in given.keys() - known.keys():
        raise InputError(f"{name}: {section}.{key} is not known; accepted: {', '.join(known)}")
    values = {}
    for key, form in known.items():
        if key not in given:
            raise InputError(f"{name}: {section}.{key} is missing; copy it from validation.toml")
        values[key] = _value(f"{name}: {section}.{key}", form, given[key], share=kind is Tolerance)
    return kind(**values)


def _value(where: str, form: str, given: object, *, share: bool) -> object:
    if form == "bool":
        if not isinstance(given, bool):
            raise InputError(f"{where}: got {given!r}; accepted: true or false")
        return given
    if form.startswith("tuple"):
        one = int if "int" in form else (int, float)
        least = 0 if one is not int or where.endswith("soft_cap") else 1
        numbers = given if isinstance(given, list) else []
        good = all(_number(each, one) and each >= least for each in numbers)
        if not isinstance(given, list) or not good or (one is int and not numbers):
            accepted = "a list of whole numbers, at least one of them" if one is int else "a list of numbers"
            raise InputError(f"{where}: got {given!r}; accepted: {accepted}, each {least} or more")
        return tuple(sorted(set(numbers)))
    if form == "int":
        if not _number(given, int):
            raise InputError(f"{where}: got {given!r}; accepted: a whole number, 0 or more")
        return given
    if not _number(given, (int, float)) or (share and not 0 < float(str(given)) < 1):
        accepted = "a share above 0 and below 1" if share else "a number, 0 or more"
        raise InputError(f"{where}: got {given!r}; accepted: {accepted}")
    return float(str(given))


def _number(given: object, kind: type | tuple[type, ...]) -> bool:
    return isinstance(given, kind) and not isinstance(given, bool) and 0 <= float(str(given)) < float("inf")
