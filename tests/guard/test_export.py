"""One call sets up exporters for people who have none: what it honours, what it leaves alone, how it ends.

Each case is a process of its own, since providers are set once a process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

TURN = """
from guard import ToolCallGuard
guard = ToolCallGuard()
with guard.turn() as turn:
    for n in range(120):
        turn.admit("Bash", {"n": n % 15})
assert not guard.faults, guard.faults
"""
NOBODY = "http://127.0.0.1:9"  # the discard port: refused at once


def run(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "TURNCAP_"))}
    return subprocess.run(
        [sys.executable, "-c", program],
        env=kept | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_files_hold_every_signal_of_every_process_forked_ones_too(tmp_path: Path) -> None:
    program = f"""
import os
from guard.export import set_up
set_up(directory={str(tmp_path)!r}, service_name="coder")
{TURN}
child = os.fork()
if child == 0:
    with guard.turn() as turn:
        turn.admit("in the child")
    import sys
    sys.exit(0)  # not os._exit: what is queued is written
os.waitpid(child, 0)
"""
    done = run(program)
    assert (done.returncode, done.stderr) == (0, "")
    lines = {
        name: [json.loads(line) for file in tmp_path.glob(f"{name}-*.jsonl") for line in file.open()]
        for name in ("logs", "traces", "metrics")
    }
    records = [
        record
        for line in lines["logs"]
        for resource in line["resourceLogs"]
        for scope in resource["scopeLogs"]
        for record in scope["logRecords"]
    ]
    names = [record["eventName"] for record in records]
    assert names.count("turncap.turn.started") == 2
    assert names.count("turncap.turn.ended") == 2
    assert names.count("turncap.loop_detected") == 1
    guards = {
        attribute["value"]["stringValue"]
        for record in records
        for attribute in record["attributes"]
        if attribute["key"] == "turncap.guard.id"
    }
    assert len(guards) == 2
    assert len(list(tmp_path.glob("logs-*.jsonl"))) == 2
    assert "resourceSpans" in lines["traces"][0]
    assert "resourceMetrics" in lines["metrics"][0]
    assert '"coder"' in json.dumps(lines["metrics"])


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_with_nobody_listening_the_agent_is_not_slowed_and_the_process_ends_in_time(protocol: str) -> None:
    program = f"from guard.export import set_up\nset_up()\n{TURN}"
    began = time.monotonic()
    done = run(program, OTEL_EXPORTER_OTLP_ENDPOINT=NOBODY, OTEL_EXPORTER_OTLP_PROTOCOL=protocol)
    took = time.monotonic() - began
    assert done.returncode == 0, done.stderr
    alone = time.monotonic()
    run("import guard.export")
    imports = time.monotonic() - alone
    assert took < imports + 3.5


def test_a_provider_that_exists_is_left_alone() -> None:
    done = run(
        """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
mine = TracerProvider()
trace.set_tracer_provider(mine)
from guard.export import set_up
exporting = set_up()
assert trace.get_tracer_provider() is mine
print(sorted(exporting.providers))
""",
        OTEL_LOGS_EXPORTER="none",
        OTEL_EXPORTER_OTLP_ENDPOINT=NOBODY,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "['metrics']"), done.stderr


HONOURED = [
    ("OTEL_SDK_DISABLED sets up nothing", {"OTEL_SDK_DISABLED": "true"}, "[]"),
    (
        "none switches a signal off",
        {"OTEL_LOGS_EXPORTER": "none", "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"},
        "[]",
    ),
    (
        "an exporter by its name",
        {"OTEL_LOGS_EXPORTER": "console", "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"},
        "['logs']",
    ),
]


@pytest.mark.parametrize(
    ("variables", "expected"), [row[1:] for row in HONOURED], ids=[row[0] for row in HONOURED]
)
def test_otel_variables_are_honoured(variables: dict[str, str], expected: str) -> None:
    done = run("from guard.export import set_up; print(sorted(set_up().providers))", **variables)
    assert (done.returncode, done.stdout.strip()) == (0, expected), done.stderr


def test_the_environment_names_the_service_before_the_argument_does(tmp_path: Path) -> None:
    program = f"""
from guard.export import set_up
set_up(directory={str(tmp_path)!r}, service_name="argument")
{TURN}
"""
    done = run(program, OTEL_SERVICE_NAME="environment", OTEL_RESOURCE_ATTRIBUTES="team=blue")
    assert done.returncode == 0, done.stderr
    text = "".join(file.read_text() for file in tmp_path.glob("logs-*.jsonl"))
    assert '"environment"' in text
    assert '"blue"' in text
    assert '"argument"' not in text


WRONG = [
    (
        "an exporter that is not installed",
        {"OTEL_TRACES_EXPORTER": "otpl"},
        "OTEL_TRACES_EXPORTER: got 'otpl'",
    ),
    (
        "a protocol that does not exist",
        {"OTEL_EXPORTER_OTLP_LOGS_PROTOCOL": "http"},
        "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL: got 'http'; accepted: http/protobuf or grpc",
    ),
]


@pytest.mark.parametrize(("variables", "said"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_what_cannot_be_honoured_is_named(variables: dict[str, str], said: str) -> None:
    done = run("from guard.export import set_up; set_up()", **variables)
    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run(f"from guard.export import set_up; set_up(directory={str(tmp_path / 'file' / 'in')!r})")
    assert done.returncode == 1
    assert "directory" in done.stderr.splitlines()[-1]
    assert "name another" in done.stderr.splitlines()[-1]


def test_a_line_that_does_not_fit_on_the_disk_is_taken_back_whole(tmp_path: Path) -> None:
    program = f"""
import resource, signal
from guard.export import set_up
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
exporting = set_up(directory={str(tmp_path)!r})
for _ in range(10):
    {TURN.replace(chr(10), chr(10) + "    ")}
    exporting.flush()
"""
    done = run(program)
    assert done.returncode == 0, done.stderr
    for file in tmp_path.glob("*.jsonl"):
        for line in file.read_text().splitlines():
            json.loads(line)
    assert any(file.stat().st_size for file in tmp_path.glob("logs-*.jsonl"))
