"""A model that follows a script, behind the HTTP interfaces that agents speak to: nothing leaves the machine.

A prompt that says `run NAME` is answered by the replies of `SCRIPTS[NAME]` in order, any other by "ok".
A reply is a list of calls (tool, arguments), or a text, which ends the turn. Which reply is next is read
off the request itself: the number of assistant messages since that prompt.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = str | Sequence[tuple[str, Mapping[str, Any]]]
Scripts = Mapping[str, Sequence[Reply]]
_ASKED = re.compile(r"run (\w+)")


class FakeModel:
    """Which reply comes next, whatever the interface."""

    def __init__(self, scripts: Scripts) -> None:
        self.scripts = scripts
        self.requests: list[tuple[str, Any]] = []
        self._numbers = iter(range(1, 1_000_000))

    def reply(self, messages: Sequence[tuple[str, str]]) -> Reply:
        """The answer to (role, text) messages; `role` is user or assistant, a tool's result is neither."""
        name, step = None, 0
        for role, text in messages:
            asked = [word for word in _ASKED.findall(text) if word in self.scripts] if role == "user" else []
            if asked:
                name, step = asked[-1], 0
            elif role == "assistant":
                step += 1
        if name is None or step >= len(self.scripts[name]):
            return "ok"
        return self.scripts[name][step]

    def number(self) -> int:
        """A new number for ids."""
        return next(self._numbers)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return " ".join(_text(part.get("text", "")) for part in content if isinstance(part, dict))
    return ""


def chat_completion(model: FakeModel, request: Any) -> tuple[list[Any], Any]:
    """OpenAI chat completions: (the chunks of a stream, the whole answer)."""
    reply = model.reply(
        [
            (m["role"], _text(m.get("content")))
            for m in request["messages"]
            if m["role"] in ("user", "assistant")
        ]
    )
    head = {
        "id": f"chatcmpl-{model.number()}",
        "created": 1_700_000_000,
        "model": request.get("model", "fake"),
    }
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    message: dict[str, Any] = {"role": "assistant", "content": reply if isinstance(reply, str) else None}
    if not isinstance(reply, str):
        message["tool_calls"] = [
            {
                "index": index,
                "id": f"call_{model.number()}",
                "type": "function",
                "function": {"name": tool, "arguments": json.dumps(arguments)},
            }
            for index, (tool, arguments) in enumerate(reply)
        ]
    reason = "stop" if isinstance(reply, str) else "tool_calls"
    chunk = {**head, "object": "chat.completion.chunk"}
    chunks = [
        {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage},
    ]
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return chunks, {**head, "object": "chat.completion", "choices": [choice], "usage": usage}


def responses(model: FakeModel, request: Any) -> tuple[list[Any], Any]:
    """OpenAI responses. Calls of one reply are items in a row: a run of them is one assistant message."""
    messages: list[tuple[str, str]] = []
    before = ""
    given = request["input"]
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        kind = item.get("type", "message")
        if kind in ("function_call", "custom_tool_call", "local_shell_call"):
            if before != "call":
                messages.append(("assistant", ""))
            before = "call"
        elif kind == "message":
            messages.append((item.get("role", ""), _text(item.get("content"))))
            before = kind
        elif kind.endswith("_output"):
            before = kind
    reply = model.reply(messages)
    identity = f"resp_{model.number()}"
    output: list[dict[str, Any]]
    if isinstance(reply, str):
        content = [{"type": "output_text", "text": reply, "annotations": []}]
        output = [
            {
                "type": "message",
                "id": f"msg_{model.number()}",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        ]
    else:
        output = [
            {
                "type": "function_call",
                "id": f"fc_{model.number()}",
                "call_id": f"call_{model.number()}",
                "name": tool,
                "arguments": json.dumps(arguments),
                "status": "completed",
            }
            for tool, arguments in reply
        ]
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
    }
    whole = {
        "id": identity,
        "object": "response",
        "created_at": 1_700_000_000,
        "model": request.get("model", "fake"),
        "status": "completed",
        "output": output,
        "usage": usage,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    events: list[Any] = [
        {
            "type": "response.created",
            "response": {**whole, "status": "in_progress", "output": [], "usage": None},
        }
    ]
    for index, item in enumerate(output):
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)], whole


def anthropic(model: FakeModel, request: Any) -> tuple[list[Any], Any]:
    """Anthropic messages."""
    reply = model.reply([(m["role"], _text(m["content"])) for m in request["messages"]])
    blocks: list[dict[str, Any]]
    if isinstance(reply, str):
        blocks = [{"type": "text", "text": reply}]
    else:
        blocks = [
            {"type": "tool_use", "id": f"toolu_{model.number():024d}", "name": tool, "input": dict(arguments)}
            for tool, arguments in reply
        ]
    usage = {"input_tokens": 10, "output_tokens": 5}
    whole = {
        "id": f"msg_{model.number():024d}",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", "fake"),
        "content": blocks,
        "stop_reason": "end_turn" if isinstance(reply, str) else "tool_use",
        "stop_sequence": None,
        "usage": usage,
    }
    events: list[Any] = [
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
    ]
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            start: dict[str, Any] = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            {"type": "content_block_start", "index": index, "content_block": start},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    stop = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    events += [{"type": "message_delta", "delta": stop, "usage": usage}, {"type": "message_stop"}]
    return events, whole


def gemini(model: FakeModel, request: Any) -> tuple[list[Any], Any]:
    """Gemini generateContent."""
    messages = []
    for content in request["contents"]:
        role = {"model": "assistant"}.get(content.get("role", "user"), "user")
        messages.append((role, _text(content.get("parts", []))))
    reply = model.reply(messages)
    if isinstance(reply, str):
        parts: list[Any] = [{"text": reply}]
    else:
        parts = [{"functionCall": {"name": tool, "args": dict(arguments)}} for tool, arguments in reply]
    whole = {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": "fake",
        "responseId": f"r{model.number()}",
    }
    return [whole], whole


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request = json.loads(body or b"{}")
        model: FakeModel = self.server.model  # type: ignore[attr-defined]
        path = self.path.partition("?")[0]
        model.requests.append((path, request))
        streamed = bool(request.get("stream"))
        named = False
        if path.endswith("/chat/completions"):
            events, whole = chat_completion(model, request)
        elif path.endswith("/responses"):
            (events, whole), named = responses(model, request), True
        elif path.endswith("/messages"):
            (events, whole), named = anthropic(model, request), True
        elif "GenerateContent" in path or path.endswith(":generateContent"):
            events, whole = gemini(model, request)
            streamed = "streamGenerateContent" in path
        elif path.endswith(("/count_tokens", ":countTokens")):
            events, whole, streamed = [], {"input_tokens": 10, "totalTokens": 10}, False
        else:
            return self._send(404, "application/json", b'{"error":{"message":"not here"}}')
        if not streamed:
            return self._send(200, "application/json", json.dumps(whole).encode())
        text = "".join(
            (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n"
            for event in events
        )
        if path.endswith("/chat/completions"):
            text += "data: [DONE]\n\n"
        return self._send(200, "text/event-stream", text.encode())

    def do_GET(self) -> None:
        self._send(404, "application/json", b'{"error":{"message":"not here"}}')

    def _send(self, status: int, media: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serve(scripts: Scripts) -> Iterator[tuple[str, FakeModel]]:
    """(base URL, the model) while the block runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.model = FakeModel(scripts)  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.model  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
