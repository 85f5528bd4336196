"""Who may import whom, what importing the guard loads, and that the packages are this distribution's."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest

import analytics
import guard

ROOT = Path(__file__).resolve().parents[1]
GUARD = sorted((ROOT / "guard").rglob("*.py"))
ANALYTICS = sorted((ROOT / "analytics").rglob("*.py"))
# What analytics takes of the guard: what is pure. The demo drives one; the receiver writes as exporters do.
SHARED = {
    "guard.names",
    "guard.policy",
    "guard.signals",
    "guard.errors",
    "guard.keys",
    "guard.masking",
    "guard.tools",
    "guard.otlp_json",
}
DRIVER = "demo.py"


def imports(file: Path) -> Iterator[str]:
    """Every module that a file imports, wherever in it; what only a type checker reads is left out."""
    tree = ast.parse(file.read_text("utf-8"))
    typing_only = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING"
        for inner in branch.body
        for node in ast.walk(inner)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from names if node.module in ("guard", "analytics") else [node.module]


def name(file: Path) -> str:
    return str(file.relative_to(ROOT))


@pytest.mark.parametrize("file", GUARD, ids=name)
def test_the_guard_imports_neither_analytics_nor_what_only_extras_install(file: Path) -> None:
    allowed = {*sys.stdlib_module_names, "guard", "opentelemetry", "orjson"}
    if file.name == "otlp_json.py":
        allowed.add("google")  # protobuf, which the exporters bring
    if file.parent.name == "integrations":
        return  # each imports its own framework, when it is asked for
    for module in imports(file):
        assert module.split(".")[0] in allowed, module
        if module.split(".")[0] == "orjson":
            assert file.name == "keys.py"


@pytest.mark.parametrize("file", GUARD, ids=name)
def test_opentelemetry_is_imported_where_it_belongs(file: Path) -> None:
    found = {module for module in imports(file) if module.startswith("opentelemetry")}
    if file.name in ("export.py", "otlp_json.py"):
        return
    assert not {module for module in found if module.split(".")[1:2] in (["sdk"], ["exporter"], ["proto"])}
    assert not found or file.name == "telemetry.py"


@pytest.mark.parametrize("file", GUARD, ids=name)
def test_the_unstable_logs_api_is_imported_in_one_guarded_place(file: Path) -> None:
    unstable = [module for module in imports(file) if module.startswith("opentelemetry._logs")]
    if file.name == "telemetry.py":
        assert unstable == ["opentelemetry._logs"]
        assert "try:" in file.read_text("utf-8").split("opentelemetry._logs")[0]
    elif file.name != "export.py":
        assert not unstable


@pytest.mark.parametrize("file", ANALYTICS, ids=name)
def test_analytics_takes_of_the_guard_what_replay_and_guard_must_share(file: Path) -> None:
    taken = {module for module in imports(file) if module.split(".")[0] == "guard"}
    if file.name != DRIVER:
        assert taken <= SHARED


PURE = (
    "policy.py",
    "keys.py",
    "signals.py",
    "counts.py",
    "chunks.py",
    "memory.py",
    "outstanding.py",
    "verdict.py",
    "names.py",
)


@pytest.mark.parametrize("file", PURE)
def test_what_decides_touches_no_clock_lock_environment_or_telemetry(file: str) -> None:
    found = {module.split(".")[0] for module in imports(ROOT / "guard" / file)}
    assert found.isdisjoint({"time", "threading", "os", "random", "logging", "opentelemetry", "asyncio"})


def test_importing_the_guard_loads_neither_sdk_nor_duckdb_nor_a_framework() -> None:
    program = "import json, sys, guard; print(json.dumps(sorted(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
    heavy = ("opentelemetry.sdk", "opentelemetry.exporter", "duckdb", "pandas", "numpy", "analytics")
    assert not [module for module in json.loads(printed) if module.startswith((*heavy, "langchain"))]


def test_the_base_dependency_is_the_api_alone() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["dependencies"] == ["opentelemetry-api>=1.38,<2"]


def test_guard_and_analytics_are_this_distributions() -> None:
    """Other packages claim both names: had one been installed over this, it would be found here."""
    dist = distribution("turncap")
    url = json.loads(dist.read_text("direct_url.json") or "{}").get("url", "")
    files = {str(file) for file in dist.files or ()}
    for package in (guard, analytics):
        file = Path(str(package.__file__)).resolve()
        assert file.is_relative_to(ROOT)
        editable = url.removeprefix("file://") == str(ROOT)
        assert editable or f"{package.__name__}/__init__.py" in files


def test_every_module_that_is_to_be_compiled_exists() -> None:
    """The build passes over a name that matches nothing."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        wheel = tomllib.load(file)["tool"]["hatch"]["build"]["targets"]["wheel"]
    names = wheel["hooks"]["mypyc"]["include"]
    assert "/guard/core.py" in names
    assert [name for name in names if not (ROOT / name.removeprefix("/")).is_file()] == []


@pytest.mark.heavy
def test_the_built_wheel_alone_runs_the_rule(tmp_path: Path) -> None:
    """Built, installed without extras into a fresh environment, run from elsewhere."""
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        inside = packed.namelist()
    assert {"guard/registry.yaml", "guard/py.typed", "analytics/schema.sql"} <= set(inside)
    assert "analytics/evidence/turns.jsonl.gz" in inside
    assert {name.split("/")[0] for name in inside} - {"guard", "analytics"} == {
        name.split("/")[0] for name in inside if ".dist-info" in name
    }
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", wheel], check=True, timeout=300)
    program = """
import guard, json, sys
from importlib.metadata import distributions
turn = guard.ToolCallGuard().start_turn()
halted = [turn.admit("Bash", {"n": n % 17}).halted for n in range(101)]
assert halted == [False] * 100 + [True], halted
assert turn.verdict.threshold == "soft-stuck"
print(guard.__file__)
print(json.dumps(sorted(d.name for d in distributions())))
"""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "TURNCAP_"))}
    done = subprocess.run(
        [python, "-c", program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=clean,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    where, installed = done.stdout.splitlines()
    assert Path(where).is_relative_to(tmp_path / "venv")
    assert set(json.loads(installed)) - {"pip", "setuptools"} == {
        "opentelemetry-api",
        "turncap",
        "typing_extensions",
    }
