"""What a person names on the command line -> the files to read, in an order that does not change."""

from __future__ import annotations

import difflib
import glob
import os
from collections.abc import Sequence
from errno import EACCES
from pathlib import Path

from analytics.errors import InputError

STDIN = "-"
GIVE = "give files that you may read, or leave it out"
# What is never telemetry in a folder: databases, and what a report or a plan of labels wrote beside it.
_PASSED_OVER = (".duckdb", ".wal", ".html", ".md", ".py", ".parquet", ".png", ".csv", ".toml", ".tmp")
_REPORT = "report.json"


def expand(names: Sequence[str]) -> list[str]:
    """Every file that `names` (files, folders with all below them, patterns, `-`) stand for, each once.

    Raises:
        InputError: a name that stands for nothing, with the nearest name there is; a file that may not be
            read.
    """
    found: dict[str, None] = {}
    for name in names:
        if name == STDIN:
            found[name] = None
            continue
        path = Path(name).expanduser()
        if path.is_dir():
            inside = [one for one in sorted(path.rglob("*")) if _telemetry(one)]
            if not inside:
                raise InputError(f"{name}: a folder without files to load")
            found.update(dict.fromkeys(map(str, inside)))
        elif path.exists():
            found[str(path)] = None
        elif matches := sorted(glob.glob(str(path), recursive=True)):  # noqa: PTH207 - absolute patterns too
            found.update(dict.fromkeys(one for one in matches if Path(one).is_file()))
        else:
            raise InputError(f"{name}: no such file, folder or pattern{nearest(path)}")
    for one in found:
        if one != STDIN and not os.access(one, os.R_OK):
            raise unreadable(one, PermissionError(EACCES, os.strerror(EACCES)), GIVE)
    return list(found)


def size(paths: Sequence[str]) -> int:
    """The bytes of all files on disk; 0 where standard input, which has no end yet, is among them."""
    return 0 if STDIN in paths else sum(Path(path).stat().st_size for path in paths)


def _telemetry(path: Path) -> bool:
    passed_over = path.name.startswith(".") or path.name == _REPORT or path.suffix in _PASSED_OVER
    return path.is_file() and not passed_over


def unreadable(path: Path | str, error: OSError | ValueError | EOFError, give: str) -> InputError:
    """The error for a file that a person named and that cannot be read; `give` says what is accepted."""
    if isinstance(error, FileNotFoundError):
        return InputError(f"{path}: no such file{nearest(Path(path))}; {give}")
    why = error.strerror if isinstance(error, OSError) and error.strerror else error
    return InputError(f"{path}: cannot be read ({why}); {give}")


def nearest(path: Path) -> str:
    """What stands beside a path that does not exist and was probably meant, as the end of a message."""
    try:
        names = [one.name for one in path.parent.iterdir()]
    except OSError:
        return f"; there is no folder {path.parent}"
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.5)
    return f"; did you mean {path.parent / near[0]}?" if near else ""
