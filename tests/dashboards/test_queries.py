"""Every query names only what exists, and every SQL of a panel answers on a database of real turns."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import duckdb
import pytest

from analytics.dashboards import expand
from analytics.report.build import build_report
from analytics.report.render import to_json
from analytics.snapshot import publish
from analytics.validation.settings import read_settings
from tests.analytics.evidence_db import build, evidence_rows
from tests.dashboards.reading import FILES, dissect, load, targets
from tools.dashboards.catalog import FOREIGN, OWN, Metric, label
from tools.dashboards.promql import filled

SERIES: dict[str, Metric] = {
    series: metric for metric in (*OWN.values(), *FOREIGN) for series in metric.series()
}
EVERYWHERE = {"job", "instance", "le"}
PROMQL = [(where, target["expr"]) for where, _, target in targets("prometheus")]
ANNOTATIONS = [(each["name"], each["expr"]) for path in FILES for each in load(path)["annotations"]["list"]]
SQL = [(where, target["rawSql"]) for where, _, target in targets("motherduck-duckdb-datasource")]
WHERE = [where for where, _ in SQL]


@pytest.mark.parametrize(("where", "expression"), PROMQL + ANNOTATIONS)
def test_metrics_and_labels_are_in_the_catalogue(where: str, expression: str) -> None:
    selectors, grouped = dissect(expression)
    allowed = set(EVERYWHERE)
    for selector in selectors:
        assert selector.metric in SERIES, where
        own = {label(attribute) for attribute in SERIES[selector.metric].attributes} | EVERYWHERE
        assert selector.labels <= own, where
        allowed |= own
    assert grouped <= allowed, where


def test_every_metric_of_the_guard_is_shown_somewhere() -> None:
    shown = {selector.metric for _, expression in PROMQL for selector in dissect(expression)[0]}
    assert [metric.name for metric in OWN.values() if not shown & set(metric.series())] == []


@pytest.mark.parametrize(
    ("name", "kind", "unit", "expected"),
    [
        ("turncap.turns", "counter", "{turn}", "turncap_turns_total"),
        ("turncap.turn.guard_time", "histogram", "s", "turncap_turn_guard_time_seconds"),
        ("turncap.policy.limit", "gauge", "{call}", "turncap_policy_limit"),
        ("export.size", "counter", "By", "export_size_bytes_total"),
        ("seen_total", "counter", "{turn}", "seen_total"),
    ],
)
def test_names_are_translated_as_the_otlp_receiver_does(
    name: str, kind: str, unit: str, expected: str
) -> None:
    metric = Metric(name=name, kind=kind, unit=unit, attributes=())  # type: ignore[arg-type]
    assert metric.prometheus == expected


def test_macros_and_variables_are_filled_in() -> None:
    filled_in = filled(
        'sum(increase(x{job=~"$job"}[$__range])) + rate(y{instance=~"$instance"}[$__rate_interval])'
    )
    assert filled_in == 'sum(increase(x{job=~".*"}[6h])) + rate(y{instance=~".*"}[4m])'


@pytest.fixture(scope="module")
def snapshot(
    evidence_db: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[duckdb.DuckDBPyConnection]:
    """The bundled turns as they are published, with the report of forty of them, and two weekly looks."""
    folder = tmp_path_factory.mktemp("snapshot")
    few = [row for row in evidence_rows() if row["label"]][-40:]
    with duckdb.connect(str(build(folder / "few.duckdb", few)), read_only=True) as connection:
        report = to_json(build_report(connection, read_settings()))
    (folder / "report.json").write_text(report, encoding="utf-8")
    publish(evidence_db, folder / "snapshot.duckdb", folder / "report.json")
    with duckdb.connect(str(folder / "snapshot.duckdb")) as connection:
        for week, verdict in (("2025-W49", "insufficient evidence"), ("2025-W50", "too low")):
            connection.execute(
                "INSERT INTO looks VALUES (?, 'stuck_threshold', 'all', 1, 0.05, ?, ?, 0.9, 0.6, 0.99)",
                [week, 1_765_000_000_000_000_000, verdict],
            )
        yield connection


def _stuck(snapshot: duckdb.DuckDBPyConnection) -> str:
    row = snapshot.execute(
        "SELECT turn_id FROM seen_turns WHERE stuck ORDER BY calls DESC, turn_id"
    ).fetchone()
    assert row is not None
    return str(row[0])


@pytest.mark.parametrize(("where", "sql"), SQL, ids=WHERE)
@pytest.mark.parametrize(
    "period", [None, ("2025-11-01T00:00:00Z", "2026-01-01T00:00:00Z")], ids=["always", "autumn"]
)
def test_the_sql_of_a_panel_answers(
    snapshot: duckdb.DuckDBPyConnection, where: str, sql: str, period: tuple[str, str] | None
) -> None:
    rows = snapshot.execute(expand(sql, period=period, turn_id=_stuck(snapshot))).fetchall()
    assert rows or "Halts to read next" in where  # every bundled halt is labelled


@pytest.mark.parametrize(("where", "sql"), SQL, ids=WHERE)
def test_the_sql_of_a_panel_stands_an_empty_database_and_a_strange_id(where: str, sql: str) -> None:
    with duckdb.connect() as connection:
        for script in ("schema.sql", "views.sql"):
            connection.execute(files("analytics").joinpath(script).read_text(encoding="utf-8"))
        rows = connection.execute(expand(sql, turn_id="it's; DROP TABLE turns")).fetchall()
    assert rows == [] or "FROM freshness" in sql


def test_the_views_count_the_bundled_halts_as_they_are_known(snapshot: duckdb.DuckDBPyConnection) -> None:
    halts = "SELECT sum(halts), sum(halts_stuck), sum(halts_not_stuck), sum(halts_unread) FROM weekly_halts"
    assert snapshot.execute(halts).fetchone() == (10, 1, 9, 0)


def test_a_step_shows_how_often_its_request_was_made_and_since_when_nothing_was_new() -> None:
    # T e1 T e2 T: the second T brings a new result, the third the result of the second; then a retry
    calls = [
        (1, 0, 0, 0),
        (2, 0, 1, 1),
        (3, 0, 0, 2),
        (4, 0, 2, 3),
        (5, 0, 0, 2),
        (6, 1, 0, 2),
        (7, 1, 0, None),
    ]
    with duckdb.connect() as connection:
        for script in ("schema.sql", "views.sql"):
            connection.execute(files("analytics").joinpath(script).read_text(encoding="utf-8"))
        for n, epoch, key, result in calls:
            connection.execute(
                "INSERT INTO calls (turn_id, n, epoch, key, result, refused, settled_order) VALUES ('t', ?, ?, ?, ?, FALSE, ?)",
                [n, epoch, key, result, None if result is None else n - 1],
            )
        steps = connection.execute(
            "SELECT n, asked, most_repeated, nothing_new FROM call_steps ORDER BY n"
        ).fetchall()
    assert steps == [
        (1, 1, 1, 0),
        (2, 1, 1, 0),
        (3, 2, 2, 0),
        (4, 1, 2, 0),
        (5, 3, 3, 1),
        (6, 1, 1, 0),
        (7, 2, 2, None),
    ]
