"""Errors that a person at the command line can mend: one clear line each."""

from __future__ import annotations

from guard.errors import TurncapError


class InputError(TurncapError):
    """A path, file or database that cannot be used; the message says what to do instead."""


def is_interrupt(error: BaseException) -> bool:
    """Whether a person's Ctrl-C raised `error`: DuckDB turns it into an error of its own during a query."""
    return isinstance(error, KeyboardInterrupt) or (
        type(error) is RuntimeError and str(error) == "Query interrupted"
    )
