"""promtool on the committed rules: they check, their tests pass, and the tests notice a changed rule."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dashboards.reading import HOME
from tools.integration.components import Components

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]

PROMETHEUS = HOME / "prometheus"
TESTS = sorted((PROMETHEUS / "tests").glob("*.test.yml"))
RULES: dict[str, Any] = {
    name: yaml.safe_load((PROMETHEUS / name).read_text(encoding="utf-8"))
    for name in ("turncap.rules.yml", "turncap.alerts.yml")
}
ALERTS: dict[str, dict[str, Any]] = {
    rule["alert"]: rule for group in RULES["turncap.alerts.yml"]["groups"] for rule in group["rules"]
}


def _cases() -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in TESTS:
        for case in yaml.safe_load(path.read_text(encoding="utf-8"))["tests"]:
            yield path, case


def test_the_configuration_and_its_rules_check(components: Components) -> None:
    command: list[str | Path] = [
        components.promtool,
        "check",
        "config",
        "--lint=all",
        "--lint-fatal",
        PROMETHEUS / "prometheus.yml",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_the_rule_tests_pass(components: Components, path: Path) -> None:
    done = subprocess.run([components.promtool, "test", "rules", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_has_a_case_in_which_it_fires_and_one_in_which_it_is_silent(alert: str) -> None:
    cases = [case for _, case in _cases() if case["name"].split()[0] == alert]
    fires = [check for case in cases for check in case["promql_expr_test"] if check["exp_samples"]]
    silent = [check for case in cases for check in case["promql_expr_test"] if not check["exp_samples"]]
    assert fires
    assert silent


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One alert, changed so that its tests must fail."""

    alert: str
    what: str
    rule: dict[str, Any]


def _twice(duration: str) -> str:
    found = re.fullmatch(r"(\d+)([smhd])", duration)
    assert found
    return f"{int(found[1]) * 2}{found[2]}"


def _mutants() -> Iterator[Mutant]:
    """Numbers halved and doubled, comparisons turned round, waits cut and doubled, and the like."""
    for name, rule in ALERTS.items():
        yield from (Mutant(alert=name, what=what, rule=rule | changed) for what, changed in _changes(rule))


def _changes(rule: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    expr = rule["expr"]
    for found in re.finditer(r"(>=|>|<) (\d+(?:\.\d+)?)(?= \*|\s|$)", expr):
        number = float(found[2])
        for changed in (number / 2, number * 2) if number else (1e6,):
            text = f"{expr[: found.start(2)]}{changed:g}{expr[found.end(2) :]}"
            yield f"{found[0]} to {changed:g} at {found.start()}", {"expr": text}
    for found in re.finditer(r" (>|<|!=) ", expr):
        turned = {">": "<=", "<": ">=", "!=": "=="}[found[1]]
        text = f"{expr[: found.start(1)]}{turned}{expr[found.end(1) :]}"
        yield f"{found[1]} to {turned} at {found.start()}", {"expr": text}
    if '!=""' in expr:
        yield "the label that must be there is not", {"expr": expr.replace('!=""', '=""')}
    if rule["for"] != "0m":
        yield "no wait", {"for": "0s"}
        yield "twice the wait", {"for": _twice(rule["for"])}
    if "keep_firing_for" in rule:
        yield "not kept firing", {"keep_firing_for": "0s"}
        yield "kept firing twice as long", {"keep_firing_for": _twice(rule["keep_firing_for"])}
    yield "another severity", {"labels": {"severity": "page"}}
    yield "never", {"expr": f"({expr}) and on () vector(0) > 1"}


MUTANTS = list(_mutants())


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.alert}: {mutant.what}")
def test_a_changed_alert_fails_its_tests(components: Components, tmp_path: Path, mutant: Mutant) -> None:
    for name, rules in RULES.items():
        groups = [
            {
                **group,
                "rules": [
                    mutant.rule if each.get("alert") == mutant.alert else each for each in group["rules"]
                ],
            }
            for group in rules["groups"]
        ]
        (tmp_path / name).write_text(yaml.safe_dump({"groups": groups}), encoding="utf-8")
    (tmp_path / "tests").mkdir()
    mine = []
    for path in TESTS:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        document["tests"] = [case for case in document["tests"] if case["name"].split()[0] == mutant.alert]
        if document["tests"]:
            mine.append(tmp_path / "tests" / path.name)
            mine[-1].write_text(yaml.safe_dump(document), encoding="utf-8")
    done = subprocess.run([components.promtool, "test", "rules", *mine], capture_output=True, text=True)
    assert "FAILED" in done.stdout + done.stderr
    assert "parse error" not in done.stdout + done.stderr
