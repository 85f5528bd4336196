"""Coding agents run by their command line against the fake model, with telemetry sent to a receiver.

Each function runs two prompts in one session and returns the session files that the program wrote.
Nothing of the caller's environment is passed on.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.payloads.fake_model import Scripts


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where a program runs: its command, a home and a project of its own, the model, the receiver."""

    program: Path
    home: Path
    project: Path
    model: str
    receiver: str

    def run(self, arguments: Sequence[str], **environment: str) -> None:
        """One prompt; raises when the program fails."""
        done = subprocess.run(
            [str(self.program), *arguments],
            cwd=self.project,
            env={
                "HOME": str(self.home),
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "NO_COLOR": "1",
                **environment,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
        )
        if done.returncode:
            raise RuntimeError(f"{self.program}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")

    def configure(self, name: str, text: str) -> None:
        """Write a file below the home."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def claude_code(stage: Stage) -> list[Path]:
    """Claude Code, with tool details and its tracing beta."""
    environment = {
        "ANTHROPIC_API_KEY": "fake",
        "ANTHROPIC_BASE_URL": stage.model,
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
        "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA": "1",
        "OTEL_LOG_TOOL_DETAILS": "1",
        "OTEL_LOGS_EXPORTER": "otlp",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_ENDPOINT": stage.receiver,
    }
    options = ["--allowedTools", "Bash,Read,Agent", "--model", "claude-sonnet-4-5"]
    stage.run([*options, "-p", "please run first"], **environment)
    stage.run([*options, "--continue", "-p", "please run second"], **environment)
    return sorted(stage.home.glob(".claude/projects/**/*.jsonl"))


def codex(stage: Stage) -> list[Path]:
    """Codex CLI, in its own program's way of naming things."""
    stage.configure(
        ".codex/config.toml",
        f"""
model = "fake-model"
model_provider = "fake"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.fake]
name = "fake"
base_url = "{stage.model}/v1"
env_key = "FAKE_KEY"
wire_api = "responses"
[otel]
environment = "test"
exporter = {{ otlp-http = {{ endpoint = "{stage.receiver}/v1/logs", protocol = "json" }} }}
trace_exporter = {{ otlp-http = {{ endpoint = "{stage.receiver}/v1/traces", protocol = "binary" }} }}
""",
    )
    stage.run(["exec", "--skip-git-repo-check", "please run first"], FAKE_KEY="fake")
    stage.run(["exec", "--skip-git-repo-check", "resume", "--last", "please run second"], FAKE_KEY="fake")
    return sorted(stage.home.glob(".codex/sessions/**/*.jsonl"))


def copilot_cli(stage: Stage) -> list[Path]:
    """Copilot CLI with content captured, over the wire and once more by its file exporter."""
    environment = {
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{stage.model}/v1",
        "COPILOT_PROVIDER_API_KEY": "fake",
        "COPILOT_MODEL": "fake-model",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true",
    }
    wire = {"OTEL_EXPORTER_OTLP_ENDPOINT": stage.receiver}
    stage.run(["--allow-all-tools", "-p", "please run first"], **environment, **wire)
    stage.run(["--allow-all-tools", "--continue", "-p", "please run second"], **environment, **wire)
    path = stage.home / "lines.jsonl"
    file = {"COPILOT_OTEL_EXPORTER_TYPE": "file", "COPILOT_OTEL_FILE_EXPORTER_PATH": str(path)}
    stage.run(["--allow-all-tools", "-p", "please run first"], **environment, **file)
    return [path]


def gemini_cli(stage: Stage) -> list[Path]:
    """Gemini CLI, with prompts logged, and so arguments."""
    telemetry = {
        "enabled": True,
        "target": "local",
        "otlpEndpoint": stage.receiver,
        "otlpProtocol": "http",
        "logPrompts": True,
    }
    settings = {"telemetry": telemetry, "security": {"auth": {"selectedType": "gemini-api-key"}}}
    stage.configure(".gemini/settings.json", json.dumps(settings))
    environment = {
        "GEMINI_API_KEY": "fake",
        "GOOGLE_GEMINI_BASE_URL": stage.model,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }
    options = ["--approval-mode", "yolo", "-m", "gemini-2.5-flash"]
    stage.run([*options, "-p", "please run first"], **environment)
    stage.run([*options, "--resume", "latest", "-p", "please run second"], **environment)
    return sorted(stage.home.glob(".gemini/tmp/*/chats/*.jsonl"))


def qwen_code(stage: Stage) -> list[Path]:
    """Qwen Code."""
    telemetry = {"enabled": True, "target": "local", "otlpEndpoint": stage.receiver, "otlpProtocol": "http"}
    settings = {"telemetry": telemetry, "security": {"auth": {"selectedType": "openai"}}}
    stage.configure(".qwen/settings.json", json.dumps(settings))
    environment = {
        "OPENAI_API_KEY": "fake",
        "OPENAI_BASE_URL": f"{stage.model}/v1",
        "OPENAI_MODEL": "fake-model",
    }
    stage.run(["--approval-mode", "yolo", "-p", "please run first"], **environment)
    stage.run(["--approval-mode", "yolo", "--continue", "-p", "please run second"], **environment)
    return sorted(stage.home.glob(".qwen/projects/**/*.jsonl"))


def _shell_script(shell: str, argument: str, then: Mapping[str, Sequence[Any]]) -> Scripts:
    """The same command twice, another one beside the second; then what the second prompt is to do."""
    about = {"description": "a command"} if argument == "command" else {}
    again, other = (shell, {argument: "echo one", **about}), (shell, {argument: "ls", **about})
    return {"first": [[again], [again, other], "done"], **then}


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One command line program: its npm package, how it is run, what the model is to ask for."""

    package: str
    command: str
    run: Callable[[Stage], list[Path]]
    scripts: Scripts


_HELP = {"description": "help", "prompt": "run third", "subagent_type": "general-purpose"}
PROGRAMS = {
    "claude-code": Program(
        package="@anthropic-ai/claude-code@2.1.197",
        command="claude",
        run=claude_code,
        scripts=_shell_script(
            "Bash",
            "command",
            {
                "second": [
                    [("Read", {"file_path": "/nowhere/missing.txt"})],
                    [
                        (
                            "Agent",
                            {
                                "description": "help",
                                "prompt": "run third",
                                "subagent_type": "general-purpose",
                            },
                        )
                    ],
                    "done",
                ],
                "third": [[("Bash", {"command": "echo sub"})], "done"],
            },
        ),
    ),
    "codex": Program(
        package="@openai/codex@0.171.0",
        command="codex",
        run=codex,
        scripts=_shell_script(
            "exec_command",
            "cmd",
            {
                "second": [
                    [("exec_command", {"cmd": "cat missing.txt"})],
                    [("no_such_tool", {"x": 1})],
                    "done",
                ]
            },
        ),
    ),
    "copilot-cli": Program(
        package="@github/copilot@1.0.102",
        command="copilot",
        run=copilot_cli,
        scripts=_shell_script(
            "bash", "command", {"second": [[("view", {"path": "/nowhere/missing.txt"})], "done"]}
        ),
    ),
    "gemini-cli": Program(
        package="@google/gemini-cli@0.61.0",
        command="gemini",
        run=gemini_cli,
        scripts=_shell_script(
            "run_shell_command",
            "command",
            {"second": [[("read_file", {"file_path": "missing.txt"})], "done"]},
        ),
    ),
    "qwen-code": Program(
        package="@qwen-code/qwen-code@0.15.10",
        command="qwen",
        run=qwen_code,
        scripts=_shell_script(
            "run_shell_command",
            "command",
            {"second": [[("read_file", {"file_path": "/nowhere/missing.txt"})], "done"]},
        ),
    ),
}
