"""Make the payloads in tests/data/dialects: real programs and frameworks, and a model that is a script.

    python -m tools.payloads.make [NAME…]

Each gets an environment of its own under build/payloads, from the package indexes. What is long and says
nothing of tool calls (system prompts, tool lists, stack traces) is cut; nothing else is changed but paths.
"""

from __future__ import annotations

import gzip
import json
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analytics.collect import Collector
from tools.payloads.clis import PROGRAMS, Stage
from tools.payloads.fake_model import Scripts, serve

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "payloads"
DATA = ROOT / "tests" / "data" / "dialects"
_BRANCH = re.compile(r'"gitBranch":"[^"]*"')
LONGEST = 1_000  # characters of a text that is kept whole

_CONTENT = {
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
}
_LANGSMITH = {
    "LANGSMITH_TRACING": "true",
    "LANGSMITH_OTEL_ENABLED": "true",
    "LANGSMITH_OTEL_ONLY": "true",
    "LANGSMITH_API_KEY": "fake",
    "LANGSMITH_ENDPOINT": "http://127.0.0.1:9",
}
# Payload -> (script in frameworks/, what is set in its environment)
FRAMEWORKS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "pydantic-ai": ("pydantic_ai", {}),
    "pydantic-ai-format-2": ("pydantic_ai", {"FORMAT_VERSION": "2"}),
    "strands": ("strands", {}),
    "strands-latest": ("strands", {"OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental"}),
    "google-adk": ("google_adk", {}),
    "google-adk-content": ("google_adk", _CONTENT),
    "google-adk-schema-1": ("google_adk", {"ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN": "1"}),
    "agent-framework": ("agent_framework", {}),
    "agent-framework-content": ("agent_framework", {"CONTENT": "1"}),
    "langgraph-openinference": ("langgraph_openinference", {}),
    "langgraph-openllmetry": ("langgraph_openllmetry", {}),
    "langgraph-langsmith": ("langgraph_langsmith", _LANGSMITH),
    "openai-agents-logfire": ("openai_agents_logfire", {}),
    "openai-agents-openinference": ("openai_agents", {"WITH": "openinference"}),
    "openai-agents-genai": ("openai_agents", {"WITH": "genai"}),
    "openai-agents-genai-content": ("openai_agents", {"WITH": "genai", **_CONTENT}),
    "openai-agents-both": ("openai_agents", {"WITH": "genai openinference"}),
    "mcp": ("mcp", {}),
}
SCRIPTS: Scripts = {
    "first": [
        [("search", {"q": "x"})],
        [("search", {"q": "x"}), ("add", {"a": 1, "b": 2})],
        [("broken", {})],
        "done",
    ],
    "outer": [[("helper", {"input": "run inner"})], [("add", {"a": 1, "b": 2})], "done"],
    "inner": [[("search", {"q": "y"})], "done"],
}


def main(names: list[str]) -> int:
    """Make the named payloads, or all."""
    known = [*FRAMEWORKS, *PROGRAMS]
    if unknown := set(names) - set(known):
        print(f"no payload {', '.join(sorted(unknown))}; there are {', '.join(known)}")
        return 2
    for name in names or known:
        print(name, flush=True)
        work = BUILD / "run" / name
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        if name in FRAMEWORKS:
            _framework(name, work)
        else:
            _program(name, work)
    return 0


def _framework(name: str, work: Path) -> None:
    script, extra = FRAMEWORKS[name]
    path = Path(__file__).parent / "frameworks" / f"run_{script}.py"
    python = _environment(script, path)
    with Collector(work / "otel") as collector, serve(SCRIPTS) as (model, _):
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(work),
            "OPENAI_API_KEY": "fake",
            "MODEL_URL": model,
            "OTEL_SERVICE_NAME": "demo",
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            **extra,
        }
        subprocess.run([python, path], cwd=work, env=environment, check=True, timeout=180)
    _keep(name, work / "otel" / "traces.jsonl", "traces", work)


def _environment(script: str, path: Path) -> Path:
    """A virtual environment with what the script says that it requires."""
    where = BUILD / "env" / script
    if not (where / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", where], check=True)
        wanted = [line for line in path.read_text().splitlines() if line.startswith("# requires:")]
        requirements = " ".join(line.removeprefix("# requires:") for line in wanted).split()
        subprocess.run([where / "bin" / "pip", "install", "-q", *requirements], check=True)
        (where / "ready").touch()
    return where / "bin" / "python"


def _program(name: str, work: Path) -> None:
    program = PROGRAMS[name]
    where = BUILD / "npm" / name
    command = where / "node_modules" / ".bin" / program.command
    if not command.exists():
        where.mkdir(parents=True, exist_ok=True)
        (where / "package.json").write_text("{}")
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", program.package], cwd=where, check=True)
    home, project = work / "home", work / "project"
    home.mkdir()
    project.mkdir()
    with Collector(work / "otel") as collector, serve(program.scripts) as (model, _):
        stage = Stage(program=command, home=home, project=project, model=model, receiver=collector.url)
        files = program.run(stage)
    for signal in ("logs", "traces"):
        _keep(name, work / "otel" / f"{signal}.jsonl", signal, work)
    for path in files:
        kind = "agent" if "subagents" in path.parts else "session"
        if name == "copilot-cli":
            _keep("copilot-cli-file", path, "lines", work)  # of a session that is in no other payload
        else:
            _keep(name, path, path.name if name in ("codex", "gemini-cli") else kind, work)


def _keep(name: str, path: Path, kind: str, work: Path) -> None:
    """Write what a program wrote, cut down, as `<name>.<kind>.jsonl.gz`."""
    lines = []
    for line in path.read_text().splitlines():
        value = _cut(json.loads(_anywhere(line, work)))
        if not isinstance(value, dict) or value.get("type") == "metric":
            continue
        if "resourceSpans" in value and not _spans(value):
            continue
        lines.append(json.dumps(value, separators=(",", ":"), ensure_ascii=False))
    if lines:
        DATA.mkdir(parents=True, exist_ok=True)
        target = DATA / f"{name}.{kind.removesuffix('.jsonl')}.jsonl.gz"
        target.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))


def _anywhere(line: str, work: Path) -> str:
    """The line without the place it was made at."""
    line = line.replace(str(work), "/home/user").replace(platform.release(), "6.0")
    return _BRANCH.sub('"gitBranch":"main"', line)


def _spans(value: dict[str, Any]) -> int:
    """Leave out the spans of Codex's own machinery, hundreds a turn; how many spans are left."""
    left = 0
    for resource in value["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            scope["spans"] = [span for span in scope["spans"] if not _machinery(span)]
            left += len(scope["spans"])
    return left


def _machinery(span: dict[str, Any]) -> bool:
    keys = {attribute["key"] for attribute in span.get("attributes", ())}
    return "busy_ns" in keys and "call_id" not in keys


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= LONGEST else value[:40] + " (cut)"
    if isinstance(value, list):
        return [_cut(item) for item in value if not _is_noise(item)]
    if isinstance(value, dict):
        return {key: _cut(item) for key, item in value.items()}
    return value


def _is_noise(item: Any) -> bool:
    """An attribute about the machine, or a stack trace."""
    noisy = ("process.", "host.", "os.", "exception.stacktrace", "code.", "thread.", "user.email")
    return isinstance(item, dict) and str(item.get("key", "")).startswith(noisy)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
