"""Telemetry and transcripts as other products write them, of any size, to measure loading with.

The shapes are those of the payloads in tests/data/dialects; what the tools were given and answered is made:
listings, logs, test reports, searches, sources and JSON of some hundred bytes to many thousand, full of
times, durations, ids, paths and figures. Nothing is written twice in the same bytes.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

BEGAN = datetime(2026, 11, 2, 8, tzinfo=UTC)
RESULT = (700, 1.1, 30_000)  # median, spread and most of a result's characters
SESSION = 2_000_000  # bytes of one transcript, about
BATCH = 120  # records of one export request, at most
_SYLLABLES = re.findall("..", "bacodefiguhajekilomunaorpequresitaunvexoexinalersttrplgr")
_SUFFIXES = ("py", "ts", "go", "md", "json", "yaml", "rs", "toml")


@dataclass(slots=True)
class Writer:
    """Makes texts and ids; `now` moves on with every one that has a time."""

    rng: random.Random
    now: datetime = BEGAN
    words: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.words = ["".join(self.rng.choices(_SYLLABLES, k=self.number(1, 4))) for _ in range(3000)]

    def number(self, least: int, most: int) -> int:
        """A whole number, both ends included."""
        return self.rng.randint(least, most)

    def word(self) -> str:
        """A word."""
        return self.rng.choice(self.words)

    def tick(self, most_s: float = 4.0) -> datetime:
        """A moment later."""
        self.now += timedelta(seconds=self.rng.uniform(0.002, most_s))
        return self.now

    def hexadecimal(self, digits: int) -> str:
        """A random id."""
        return f"{self.rng.getrandbits(4 * digits):0{digits}x}"

    def uuid(self) -> str:
        """A random id in groups."""
        return str(UUID(int=self.rng.getrandbits(128)))

    def phrase(self, least: int, most: int) -> str:
        """Some words."""
        return " ".join(self.rng.choices(self.words, k=self.number(least, most)))

    def path(self) -> str:
        """A file's path."""
        folders = "/".join(self.rng.choices(self.words, k=self.number(1, 4)))
        name = f"{self.word()}_{self.number(1, 99)}"
        return f"src/{folders}/{name}.{self.rng.choice(_SUFFIXES)}"

    def log_line(self) -> str:
        """A service's log."""
        self.now += timedelta(milliseconds=self.number(1, 900))
        level = self.rng.choice(("INFO", "DEBUG", "WARN", "ERROR"))
        return (
            f"{self.now:%Y-%m-%d %H:%M:%S},{self.number(0, 999):03} {level} [{self.word()}] "
            f"{self.phrase(3, 9)} in {self.rng.uniform(0, 900):.1f} ms (request {self.hexadecimal(12)})"
        )

    def listing_line(self) -> str:
        """`ls -l`."""
        return f"-rw-r--r-- 1 user user {self.number(1, 10**6):8d} {self.now:%b %d %H:%M} {self.path()}"

    def search_line(self) -> str:
        """`grep -n`."""
        return f"{self.path()}:{self.number(1, 2000)}:    {self.phrase(2, 8)}({self.word()})"

    def test_line(self) -> str:
        """A test report."""
        word = self.rng.choice(("PASSED", "PASSED", "PASSED", "FAILED"))
        took = self.rng.uniform(0, 3)
        return f"{self.path()}::test_{self.word()} {word} [{self.number(1, 100):3d}%] {took:.2f}s"

    def source_line(self) -> str:
        """A numbered line of a source."""
        indent = " " * 4 * self.number(0, 4)
        called = f"{self.phrase(1, 7)}({self.number(0, 512)})"
        return f"{self.number(1, 900):6d}\t{indent}{self.word()} = {called}"

    def prose_line(self) -> str:
        """A document; now and then with a letter beyond ASCII."""
        return f"{self.phrase(8, 16)}{self.rng.choice(('.', '.', '.', ' …', ' — or', ', as é says'))}"

    def commit_line(self) -> str:
        """`git log --oneline`, or a table of containers."""
        identifier = self.hexadecimal(self.rng.choice((7, 9, 12, 40)))
        return f"{identifier} {self.phrase(3, 8)} (#{self.number(1, 9999)})"

    def result(self) -> str:
        """What a tool answers."""
        median, spread, most = RESULT
        length = min(most, int(median * self.rng.lognormvariate(0, spread)) + 20)
        line = self.rng.choice(
            (self.log_line, self.listing_line, self.search_line, self.test_line, self.source_line,
             self.source_line, self.prose_line, self.commit_line)
        )  # fmt: skip
        lines: list[str] = []
        held = 0
        while held < length:
            lines.append(line())
            held += len(lines[-1]) + 1
        return "\n".join(lines)

    def call(self) -> tuple[str, dict[str, Any]]:
        """A tool and its arguments; some are asked for again and again."""
        kind = self.rng.random()
        if kind < 0.12:
            return "Bash", {"command": f"make test-{self.number(1, 4)} 2>&1 | tail -40"}
        if kind < 0.5:
            command = f"cd /srv/{self.path()} && {self.phrase(2, 9)} --limit {self.number(1, 500)}"
            return "Bash", {"command": command, "description": self.phrase(3, 7)}
        if kind < 0.72:
            return "Read", {"file_path": f"/srv/{self.path()}", "offset": self.number(1, 999)}
        if kind < 0.85:
            return "Grep", {"pattern": self.phrase(1, 2), "path": self.path(), "-n": True}
        old = "\n".join(self.source_line() for _ in range(self.number(1, 12)))
        return "Edit", {
            "file_path": f"/srv/{self.path()}",
            "old_string": old,
            "new_string": old + self.phrase(2, 9),
        }


def compact(value: Any) -> str:
    """JSON as the products write it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def stamp(moment: datetime) -> str:
    """A time as JavaScript writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def nanoseconds(moment: datetime) -> str:
    """A time as OTLP writes it."""
    return str(int(moment.timestamp() * 1e6) * 1000)


def value(of: Any) -> dict[str, Any]:
    """An OTLP value."""
    if isinstance(of, int):
        return {"intValue": str(of)}
    return {"doubleValue": of} if isinstance(of, float) else {"stringValue": of}


def attributes(**pairs: Any) -> list[dict[str, Any]]:
    """OTLP attributes; two underscores stand for a dot."""
    return [{"key": key.replace("__", "."), "value": value(of)} for key, of in pairs.items()]


def length(rng: random.Random) -> int:
    """Calls of a turn."""
    return min(300, int(rng.lognormvariate(1.6, 1.1)) + 1)


def genai_spans(writer: Writer) -> Iterator[dict[str, Any]]:
    """The spans of one run of an agent, in the order in which they end: a request to the model, a call …"""
    trace, root, conversation = writer.hexadecimal(32), writer.hexadecimal(16), writer.uuid()
    run, began = writer.uuid(), writer.now
    common = {
        "gen_ai__agent__name": "helper",
        "gen_ai__agent__call__id": run,
        "gen_ai__conversation__id": conversation,
    }

    def span(name: str, kind: int, identifier: str, started: datetime, **pairs: Any) -> dict[str, Any]:
        return {
            "traceId": trace, "spanId": identifier, **({} if identifier == root else {"parentSpanId": root}),
            "name": name, "kind": kind, "startTimeUnixNano": nanoseconds(started),
            "endTimeUnixNano": nanoseconds(writer.tick()), "attributes": attributes(**pairs, **common),
            "status": {}, "flags": 256,
        }  # fmt: skip

    for _ in range(length(writer.rng)):
        tool, arguments = writer.call()
        identifier = f"call_{writer.hexadecimal(24)}"
        message = {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": identifier, "name": tool, "arguments": arguments}],
        }
        yield span(
            "chat model-1", 3, writer.hexadecimal(16), writer.now, gen_ai__operation__name="chat",
            gen_ai__provider__name="openai", gen_ai__system="openai", gen_ai__request__model="model-1",
            gen_ai__output__messages=compact([message]),
            gen_ai__usage__input_tokens=writer.number(500, 90_000),
            gen_ai__usage__output_tokens=writer.number(5, 900), gen_ai__response__model="model-1",
        )  # fmt: skip
        yield span(
            f"execute_tool {tool}", 1, writer.hexadecimal(16), writer.now,
            gen_ai__operation__name="execute_tool", gen_ai__tool__name=tool,
            gen_ai__tool__call__id=identifier,
            gen_ai__tool__call__arguments=compact(arguments), gen_ai__tool__call__result=writer.result(),
            logfire__msg=f"running tool: {tool}",
        )  # fmt: skip
    yield span(
        "invoke_agent helper", 1, root, began, gen_ai__operation__name="invoke_agent", model_name="model-1",
        agent_name="helper", final_result=writer.phrase(5, 60),
    )  # fmt: skip


def genai(writer: Writer) -> Iterator[str]:
    """Lines of a Collector's file exporter: spans of the GenAI conventions, with content."""
    resource = {
        "attributes": attributes(
            service__name="demo", telemetry__sdk__language="python", service__instance__id=writer.uuid()
        )
    }
    scope = {"name": "pydantic-ai", "version": "2.68.0"}
    held: list[dict[str, Any]] = []
    while True:
        for span in genai_spans(writer):
            held.append(span)
            if len(held) >= BATCH:
                scoped = {"scope": scope, "spans": held}
                yield compact({"resourceSpans": [{"resource": resource, "scopeSpans": [scoped]}]})
                held = []


def claude_code_turn(writer: Writer, session: str, user: str) -> Iterator[dict[str, Any]]:
    """The log records of one prompt."""
    prompt, trace, number = writer.uuid(), writer.hexadecimal(32), 0

    def record(event: str, **pairs: Any) -> dict[str, Any]:
        nonlocal number
        number += 1
        at = writer.tick()
        common = {"user__id": user, "session__id": session, "terminal__type": "vscode", "event__name": event,
                  "event__timestamp": stamp(at), "event__sequence": number, "prompt__id": prompt}  # fmt: skip
        return {
            "timeUnixNano": nanoseconds(at), "body": {"stringValue": f"claude_code.{event}"},
            "attributes": attributes(**common, **pairs), "flags": 1, "traceId": trace,
            "spanId": trace[:16], "observedTimeUnixNano": nanoseconds(at),
        }  # fmt: skip

    yield record("user_prompt", prompt_length=str(writer.number(10, 900)), prompt="<REDACTED>")
    for _ in range(length(writer.rng)):
        tool, arguments = writer.call()
        call = {"tool_name": tool, "tool_use_id": f"toolu_{writer.hexadecimal(24)}"}
        told = compact(arguments)
        yield record(
            "api_request", model="claude-sonnet-4-5", input_tokens=writer.number(5, 900),
            output_tokens=writer.number(5, 900), cache_read_tokens=writer.number(0, 90_000),
            cost_usd=writer.rng.random(), duration_ms=writer.number(300, 9000),
            query_source="repl_main_thread",
        )  # fmt: skip
        yield record("tool_decision", decision="accept", source="config", **call)
        yield record(
            "tool_result", **call, success="true", duration_ms=str(writer.number(2, 9000)), tool_input=told,
            tool_input_size_bytes=str(len(told)), tool_result_size_bytes=str(writer.number(3, 9000)),
        )  # fmt: skip


def claude_code(writer: Writer) -> Iterator[str]:
    """Lines of a Collector's file exporter: Claude Code's logs with tool details."""
    resource = {"attributes": attributes(service__name="claude-code", service__version="2.1.197")}
    scope = {"name": "com.anthropic.claude_code.events", "version": "2.1.197"}
    while True:
        session, user = writer.uuid(), writer.hexadecimal(64)
        for _ in range(writer.number(1, 9)):
            records = list(claude_code_turn(writer, session, user))
            for at in range(0, len(records), BATCH):
                scoped = {"scope": scope, "logRecords": records[at : at + BATCH]}
                yield compact({"resourceLogs": [{"resource": resource, "scopeLogs": [scoped]}]})


def claude_transcript(writer: Writer) -> Iterator[str]:
    """Lines of one session file of Claude Code."""
    session, above = writer.uuid(), None
    place = {
        "userType": "external",
        "entrypoint": "cli",
        "cwd": "/srv/project",
        "sessionId": session,
        "version": "2.1.197",
        "gitBranch": "main",
    }

    def line(kind: str, message: dict[str, Any], **more: Any) -> str:
        nonlocal above
        uuid = writer.uuid()
        made = {"parentUuid": above, "isSidechain": False, "type": kind, "message": message, "uuid": uuid,
                "timestamp": stamp(writer.tick()), **more, **place}  # fmt: skip
        above = uuid
        return compact(made)

    def reply(content: list[dict[str, Any]], stop: str) -> dict[str, Any]:
        usage = {
            "input_tokens": writer.number(1, 99), "cache_creation_input_tokens": writer.number(0, 9000),
            "cache_read_input_tokens": writer.number(0, 90_000), "output_tokens": writer.number(5, 900),
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
            "service_tier": "standard",
        }  # fmt: skip
        return {
            "id": f"msg_{writer.hexadecimal(24)}", "type": "message", "role": "assistant",
            "model": "claude-sonnet-4-5", "content": content, "stop_reason": stop, "stop_sequence": None,
            "usage": usage,
        }  # fmt: skip

    while True:
        prompt = writer.uuid()
        yield line("user", {"role": "user", "content": writer.phrase(5, 90)}, promptId=prompt)
        for _ in range(length(writer.rng)):
            tool, arguments = writer.call()
            call = f"toolu_{writer.hexadecimal(24)}"
            if writer.rng.random() < 0.3:
                yield line("assistant", reply([{"type": "text", "text": writer.phrase(10, 60)}], "tool_use"))
            used = {"type": "tool_use", "id": call, "name": tool, "input": arguments}
            yield line("assistant", reply([used], "tool_use"))
            text = writer.result()
            result = {"tool_use_id": call, "type": "tool_result", "content": text, "is_error": False}
            told = {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
            yield line("user", {"role": "user", "content": [result]}, promptId=prompt, toolUseResult=told)
        yield line("assistant", reply([{"type": "text", "text": writer.phrase(10, 200)}], "end_turn"))


def codex_rollout(writer: Writer) -> Iterator[str]:
    """Lines of one session file of Codex CLI."""
    session, number = writer.uuid(), 0

    def line(kind: str, payload: dict[str, Any], **more: Any) -> str:
        nonlocal number
        number += 1
        return compact(
            {"timestamp": stamp(writer.tick()), "ordinal": number, "type": kind, "payload": payload, **more}
        )

    yield line(
        "session_meta",
        {"id": session, "cwd": "/srv/project", "originator": "codex_cli", "cli_version": "0.171.0"},
    )
    while True:
        turn = writer.uuid()
        yield line("event_msg", {"type": "task_started", "turn_id": turn, "model_context_window": 258_400})
        yield line(
            "turn_context",
            {"turn_id": turn, "cwd": "/srv/project", "approval_policy": "never", "model": "model-1"},
        )
        for _ in range(length(writer.rng)):
            tool, arguments = writer.call()
            call = f"call_{writer.hexadecimal(24)}"
            passed = {"turn_id": turn}
            yield line(
                "response_item",
                {"type": "function_call", "status": "completed", "id": f"fc_{number}", "name": "exec_command",
                 "arguments": compact(arguments), "call_id": call,
                 "internal_chat_message_metadata_passthrough": passed},
                metadata={"history_sequence": number, "sampled_through_sequence": number - 1},
            )  # fmt: skip
            used = {
                "input_tokens": writer.number(10, 90_000), "cached_input_tokens": writer.number(0, 90_000),
                "output_tokens": writer.number(5, 900), "reasoning_output_tokens": 0, "total_tokens": 0,
            }  # fmt: skip
            usage = {"usage": used, "turn_token_usage": used, "thread_token_usage": used}
            yield line("token_usage_record", {"thread_id": session, "turn_id": turn, **usage})
            text, process = writer.result(), str(writer.number(1000, 99_999))
            item = {
                "type": "CommandExecution", "id": call, "process_id": process,
                "command": ["/bin/bash", "-lc", arguments.get("command", tool)],
                "cwd": "file:///srv/project", "source": "unified_exec_startup", "status": "completed",
                "aggregated_output": text, "exit_code": 0, "duration": {"secs": 0, "nanos": int(process)},
            }  # fmt: skip
            yield line(
                "event_msg", {"type": "item_completed", "thread_id": session, "turn_id": turn, "item": item}
            )
            output = (
                f"Chunk ID: {writer.hexadecimal(6)}\nWall time: {writer.rng.uniform(0, 9):.4f} seconds\n"
                f"Process exited with code 0\nOriginal token count: {writer.number(1, 999)}\nOutput:\n{text}"
            )
            yield line(
                "response_item",
                {"type": "function_call_output", "id": f"fco_{writer.uuid()}", "call_id": call,
                 "output": output, "internal_chat_message_metadata_passthrough": passed},
                metadata={"history_sequence": number, "client_authored": False},
            )  # fmt: skip
            info = {"total_token_usage": used, "last_token_usage": used, "model_context_window": 258_400}
            limits = {"limit_id": "codex", "limit_name": None, "primary": None, "secondary": None}
            yield line("event_msg", {"type": "token_count", "info": info, "rate_limits": limits})
        yield line(
            "event_msg",
            {"type": "task_complete", "turn_id": turn, "duration_ms": writer.number(99, 99_999)},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One way of writing: its lines, and its file's name; with `sessions` it writes a file a session."""

    lines: Callable[[Writer], Iterator[str]]
    file: str
    sessions: bool = False


PRODUCTS = {
    "genai spans": Product(lines=genai, file="traces.jsonl"),
    "claude-code logs": Product(lines=claude_code, file="logs.jsonl"),
    "claude-code sessions": Product(lines=claude_transcript, file="{uuid}.jsonl", sessions=True),
    "codex sessions": Product(
        lines=codex_rollout, file="rollout-2026-11-02T08-00-00-{uuid}.jsonl", sessions=True
    ),
}


def write(product: Product, folder: Path, size: int, seed: int = 7) -> list[Path]:
    """Write about `size` bytes of what a product writes into `folder`, which is made; the files."""
    folder.mkdir()
    writer = Writer(random.Random(seed))
    paths: list[Path] = []
    total = 0
    while total < size:
        path = folder / product.file.format(uuid=writer.uuid())
        goal = min(size - total, SESSION) if product.sessions else size
        written = 0
        with path.open("w", encoding="utf-8") as out:
            for line in product.lines(writer):
                written += out.write(line + "\n")
                if written >= goal:
                    break
        total += written
        paths.append(path)
    return paths
