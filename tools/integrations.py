"""`make test-all`'s integrations stage: every framework's real package under the cap, offline.

Each framework has environments of its own, with the newest release that the extra allows and with the oldest,
under $XDG_CACHE_HOME/turncap/integrations. In each run its tests and mypy over its one file. Closes with a
table, framework × case. Where the package index cannot be reached the stage skips (exit code 75).

    python -m tools.integrations [--fresh] [framework …]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fcntl import LOCK_EX, flock
from hashlib import blake2b
from pathlib import Path
from xml.etree import ElementTree

from tools.stages import ROOT, SKIPPED

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "turncap" / "integrations"
BUILD = ROOT / "build" / "integrations"
WITH = ("pytest>=8.3", "pytest-timeout>=2.3", "mypy>=1.15")
INSTALL = ("-m", "pip", "install", "-q", "--disable-pip-version-check")
TYPED = ("-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent", "--no-warn-unused-ignores")
UNREACHABLE = (
    *("Retrying (", "ConnectionError", "NewConnectionError", "Temporary failure in name resolution"),
    *("Read timed out", "ProxyError", "Could not fetch URL", "Network is unreachable"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """One file of guard/integrations: its extra, the package whose version counts, and its columns.

    `oldest` are the requirements of the lower bound; `columns` are titles by test class.
    """

    module: str
    extra: str
    package: str
    oldest: tuple[str, ...]
    columns: dict[str, str]


FRAMEWORKS = (
    Framework(
        module="langchain",
        extra="langchain",
        package="langchain",
        oldest=("langchain==1.3.0",),
        columns={"TestCreateAgent": "LangChain create_agent", "TestGraph": "LangGraph ToolNode"},
    ),
    Framework(
        module="openai_agents",
        extra="openai-agents",
        package="openai-agents",
        oldest=("openai-agents==0.24.0",),
        columns={"TestRunner": "OpenAI Agents run", "TestStreamed": "OpenAI Agents run_streamed"},
    ),
    Framework(
        module="pydantic_ai",
        extra="pydantic-ai",
        package="pydantic-ai-slim",
        oldest=("pydantic-ai-slim==2.20.0",),
        columns={"TestPydanticAI": "Pydantic AI"},
    ),
    Framework(
        module="google_adk",
        extra="google-adk",
        package="google-adk",
        oldest=("google-adk==2.10.0",),
        columns={"TestADK": "Google ADK"},
    ),
    Framework(
        module="strands",
        extra="strands",
        package="strands-agents",
        oldest=("strands-agents==1.62.0",),
        columns={"TestStrands": "Strands"},
    ),
)


class IndexUnreachableError(Exception):
    """The package index cannot be reached."""


def main(words: list[str]) -> int:
    """Run what is named, or everything, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.integrations", description=__doc__)
    parser.add_argument("--fresh", action="store_true", help="make the environments anew")
    parser.add_argument("framework", nargs="*", help=", ".join(one.module for one in FRAMEWORKS))
    given = parser.parse_args(words)
    unknown = set(given.framework) - {one.module for one in FRAMEWORKS}
    if unknown:
        parser.error(f"no such framework: {', '.join(sorted(unknown))}")
    BUILD.mkdir(parents=True, exist_ok=True)
    table = Table()
    failed = _tests(Path(sys.executable), "plain_loop", "plain", table, {"TestPlainLoop": "plain loop"})
    try:
        for framework in FRAMEWORKS:
            if not given.framework or framework.module in given.framework:
                failed |= _framework(framework, table, given.fresh)
    except IndexUnreachableError as reason:
        table.show()
        print(f"{reason}: the package index cannot be reached")
        return 1 if failed else SKIPPED
    table.show()
    return int(failed)


def _framework(framework: Framework, table: Table, fresh: bool) -> bool:
    """Both environments of a framework; whether anything failed."""
    failed = False
    version = ""
    for which, pins in (("newest", ()), ("oldest", framework.oldest)):
        if f"{framework.package}=={version}" in pins:
            continue
        with _environment(framework, pins, fresh) as python:
            version = _version(python, framework.package)
            print(f"--- {framework.package} {version} ({which})", flush=True)
            columns = {name: f"{title} {version}" for name, title in framework.columns.items()}
            failed |= _tests(python, framework.module, f"{framework.module}-{which}", table, columns)
            if which == "newest":
                file = f"guard.integrations.{framework.module}"
                done = subprocess.run([python, *TYPED, "-m", file], cwd=ROOT, check=False)
                failed |= done.returncode != 0
    return failed


@contextmanager
def _environment(framework: Framework, pins: tuple[str, ...], fresh: bool) -> Iterator[Path]:
    """The interpreter of an environment with the framework in it, held so that no other run changes it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"][framework.extra], *pins, *WITH]
    name = blake2b("\n".join([*wanted, sys.version]).encode(), digest_size=6).hexdigest()
    folder = CACHE / f"{framework.module}-{name}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{folder.name}.lock").open("w") as lock:
        flock(lock, LOCK_EX)
        ready, python = folder / ".ready", folder / "bin" / "python"
        if fresh or not ready.exists():
            print(f"--- making {folder}", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            done = subprocess.run(
                [python, *INSTALL, *wanted],
                check=False, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            if done.returncode:
                print(done.stderr, file=sys.stderr)
                if any(sign in done.stderr for sign in UNREACHABLE):
                    raise IndexUnreachableError(framework.package)
                raise SystemExit(f"{framework.package}: pip cannot install {', '.join(wanted)}")
            ready.touch()
        yield python


def _version(python: Path, package: str) -> str:
    say = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-c", say], check=True, capture_output=True, text=True).stdout.strip()


def _tests(python: Path, module: str, name: str, table: Table, columns: dict[str, str]) -> bool:
    """Run one test module, enter its results, and say whether it failed."""
    found = BUILD / f"{name}.xml"
    found.unlink(missing_ok=True)
    words = f"-m pytest -q -m heavy tests/integrations/test_{module}.py --junitxml={found}".split()
    if module == "plain_loop":
        words[words.index("heavy")] = "not heavy"
    done = subprocess.run([python, *words], cwd=ROOT, check=False)
    if found.exists():
        table.enter(ElementTree.parse(found), columns)
    return done.returncode != 0


class Table:
    """Results by case and column."""

    def __init__(self) -> None:
        self.columns: list[str] = []
        self.cases: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))

    def enter(self, results: ElementTree.ElementTree[ElementTree.Element], columns: dict[str, str]) -> None:
        """Take the test cases of a JUnit file."""
        self.columns.extend(columns.values())
        for case in results.iter("testcase"):
            column = columns.get(case.get("classname", "").rpartition(".")[2])
            if column is not None:
                passed = all(case.find(sign) is None for sign in ("failure", "error", "skipped"))
                words = (
                    case.get("name", "")
                    .partition("[")[0]
                    .removeprefix("test_")
                    .replace("_s_", "'s_")
                    .replace("_", " ")
                )
                self.cases[words][column].append(passed)

    def show(self) -> None:
        """Print it: passed/run a cell; cases of one framework alone come last."""
        print("\nA cell is passed/run (sync and async); a dot is a case that a framework does not have.\n")
        for number, column in enumerate(self.columns):
            print(f"  {chr(65 + number)} {column}")
        print("  " + "".join(f"{chr(65 + number):>6}" for number in range(len(self.columns))))
        for words, row in sorted(self.cases.items(), key=lambda item: -len(item[1])):
            cells = (row.get(column) for column in self.columns)
            print("  " + "".join(f"{_cell(cell):>6}" for cell in cells) + f"  {words}")


def _cell(results: list[bool] | None) -> str:
    return "·" if results is None else f"{sum(results)}/{len(results)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
