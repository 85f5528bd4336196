"""Errors that a person at the command line can mend: one clear line each."""

from __future__ import annotations

from guard.errors import TurncapError


class InputError(TurncapError):
    """A path, file or database that cannot be used; the message says what to do instead."""
