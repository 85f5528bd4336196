"""What a dialect is: one product's way of writing tool calls, read record by record.

Reading has two steps, so that neither the order of records, nor files, nor loads matters:

1. **Recognise.** Each record (a span, a log record, or a line of a transcript) is offered to every
   dialect of its kind, `OTLP` or `LINES` of `analytics.dialects`, in turn. `recognise(record)` answers
   None when the record is none of its product's, else the `Seen` values it holds (an empty list: ours,
   nothing to keep). It keeps no state: records of one turn may come in any order, from several files, in
   several loads.
   The loader stores what was seen under its natural key `(group, dialect, id)`: the same thing seen
   again (a re-sent batch, the same file under another name) changes nothing.
2. **Assemble.** After each load, `analytics.dialects.assemble.assemble(seen)` gets everything ever
   seen of each group that the load touched, ordered by `(dialect, id)`, and answers the group's turns
   with their calls. It is a pure function of that set; what it answers replaces the group's rows in the
   tables. So everything that needs neighbours (splitting at prompts, parent chains, order, a call in
   both logs and spans, precedence of sources) is decided there, and only there.

A new dialect: write `analytics/dialects/<product>.py` with a table of its names and an object that has
`name` and `recognise`, append it to `OTLP` or `LINES`, and add a test file with real payloads. Nothing
else in the loader changes. Only identities and figures may be put in `Seen.data`: use `identity()` for
arguments and results, never their text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import msgspec
import orjson

from analytics.dialects.results import Result

Value = Any  # str, int, float, bool, None, bytes, or lists and dicts of them: a decoded OTLP AnyValue


class Source(StrEnum):
    """Where a record came from."""

    SPAN = "span"
    LOG = "log"
    LINE = "line"  # a JSON line that is no OTLP: a transcript or a product's own log


# To find a member in its class costs as much as two calls of a function.
SPAN, LOG, LINE = Source.SPAN, Source.LOG, Source.LINE


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanEvent:
    """One event of a span."""

    name: str
    at: int | None
    attributes: Mapping[str, Value]


class Record(msgspec.Struct, kw_only=True):
    """One record in neutral form, whatever the file's encoding was. Times are nanoseconds since 1970.

    `name` is a span's name or a log's event name, from the field, else the attribute `event.name`, else
    a text body; empty where there is none. Ids are lower-case hexadecimal, empty where absent.
    """

    source: Source
    name: str
    attributes: Mapping[str, Value] = {}
    resource: Mapping[str, Value] = {}
    scope: str = ""
    scope_version: str = ""
    trace_id: str = ""
    span_id: str = ""
    parent_id: str = ""
    started_at: int | None = None  # a span's start; None for a log
    at: int | None = None  # a span's end; a log's time, else its observed time
    failed: bool | None = None  # a span's status: True error, False ok, None unset
    body: Value = None  # a log's body; the whole object of a line
    events: Sequence[SpanEvent] = ()
    path: str = ""  # the file, as given; for messages, and for transcripts whose name says the session
    offset: int = 0  # where the line begins in the uncompressed file: the order within a transcript


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One thing a dialect saw in a record: a call, a result, a prompt, a link to a parent …

    `group` is what must be assembled together (say `session:<id>` or `trace:<id>`; dialects that may see
    the same session must build it alike). `id` is natural: the same thing seen again has the same id.
    `data` holds JSON values under the dialect's own words: figures, names and digests, never text; what
    a call returned may be a `Result` there, of which only the identity is stored.
    """

    group: str
    id: str
    kind: str
    at: int | None = None
    data: Mapping[str, Value] = {}


def row(dialect: str, seen: Seen) -> tuple[Any, ...]:
    """A `Seen` as a row of `raw_seen`: group_id, dialect, seen_id, kind, at, data."""
    data = orjson.dumps(seen.data, _identity, orjson.OPT_SORT_KEYS).decode()
    return (seen.group, dialect, seen.id, seen.kind, seen.at, data)


def _identity(value: Any) -> str:
    if isinstance(value, Result):
        return value.identity()
    raise TypeError


class Dialect(Protocol):
    """One product."""

    @property
    def name(self) -> str:
        """The word in `turns.dialect`, such as `claude-code`."""

    def recognise(self, record: Record) -> Sequence[Seen] | None:
        """What the record holds; None when it is not this product's. Never raises for odd values."""


class DialectCall(msgspec.Struct, gc=False):
    """One call of an assembled turn, in call order; the loader numbers them 1, 2, 3 …

    `key` and `result` are integers in order of first appearance in the turn (`result` numbers
    (key, result) pairs), None where the arguments or the result are unknown.
    `settled_after` is the number of calls asked for when it settled, `settled_order` its place among the
    settled calls (0, 1, 2 …); both None where it did not settle or that is unknown.
    """

    tool: str | None
    key: int | None = None
    result: int | None = None
    tool_class: str | None = None
    mutating: bool | None = None
    error: bool | None = None
    offset_ms: int | None = None  # since the turn began
    batch: int | None = None  # 1, 2, 3 …: calls of one model reply
    settled_after: int | None = None
    settled_order: int | None = None
    # What the numbers are made of, as it was seen; times in nanoseconds.
    arguments: str | None = None
    returned: str | None = None
    reply: str | None = None
    start: int | None = None
    end: int | None = None
    place: int = 0  # among what happened at the same time: where the call was asked for
    end_place: int = 0  # and where it settled
    settled: bool = False


class StoredSeen(msgspec.Struct, gc=False):
    """What `assemble` gets back: a row of `raw_seen`, the words of its `data`, listed in `facts`, as fields.

    They stand in the order in which `row` writes them: so they are found soonest.
    """

    id: str = ""
    kind: str = ""
    at: int | None = None
    agent: str | None = None
    batch: str | None = None
    call: str | None = None
    carrier: bool = False
    cluster: str | None = None
    continues: bool = False
    end: int | None = None
    error: bool | None = None
    key: str | None = None
    model: str | None = None
    origin: str = ""
    outcome: str | None = None
    parent: str | None = None
    parent_turn: str | None = None
    product: str = ""
    result: str | None = None
    role: str | None = None
    seq: int = 0
    session: str | None = None
    span: str | None = None
    start: int | None = None
    steers: bool = False
    thread: str = ""
    tool: str | None = None
    trace: str | None = None
    turn: str | None = None
    weak: bool = False
    whole: str | None = None
    within: str | None = None

    def as_call(self, start: int | None, place: int = 0) -> DialectCall:
        """The call that is told of, not numbered yet."""
        return DialectCall(
            tool=self.tool,
            error=self.error,
            arguments=self.key,
            returned=self.result,
            reply=self.batch,
            start=start,
            end=self.end,
            place=place,
        )


_decode = msgspec.json.Decoder(StoredSeen).decode


def stored(rows: Iterable[tuple[Any, str, str, int | None, str]]) -> list[StoredSeen]:
    """What rows of `raw_seen` say: group, seen_id, kind, at, data."""
    found = []
    for _, seen_id, kind, at, data in rows:
        one = _decode(data)
        one.id, one.kind, one.at = seen_id, kind, at
        found.append(one)
    return found


class DialectTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One assembled turn; the fields are columns of `turns` in schema.sql.

    `turn_id` must be unique over all products and the same however often it is assembled: build it of
    dialect, session and the turn's own key, and put no text in it. `grade` is `exact`, `no-results` or
    `names-only`. Turns without a call are given too: coverage counts them, validation leaves them out.
    """

    turn_id: str
    dialect: str
    grade: str
    calls: Sequence[DialectCall]
    cluster_id: str | None = None
    session_id: str | None = None
    conversation_id: str | None = None
    parent_id: str | None = None
    resumed_from: str | None = None
    continues: str | None = None
    agent: str | None = None
    model: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    outcome: str | None = None  # completed, errored, aborted; None where unknown
    duration_ms: float | None = None


def identity(text: str | bytes) -> str:
    """The digest that stands for arguments or a result in `Seen.data`: equal texts, equal digests."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return hashlib.blake2b(data, digest_size=16).hexdigest()
