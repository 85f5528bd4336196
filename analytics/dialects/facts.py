"""The words in which every dialect says what it saw, so that one assembler understands them all.

| kind | what | needed to |
|---|---|---|
| call | a tool call, with its result where the record has it | count |
| asked | a call was requested (its result may come in another record, or never) | order, count refused ones |
| result | what a call returned, in a record of its own | join by call id |
| prompt | a person asked something | split turns |
| end | the turn ended, or was interrupted | give the outcome |
| session | the whole id of a session that other records name by a part of it | join ways of writing it |
| node | a span that is no call: an agent's run, a workflow, or a step between them | find a call's turn |

`origin` is the kind of record. Keys of `data` are short because there is one such row a record:
tool, key, result, error, call (its id), start, end, seq, batch, thread, turn, session, whole, agent, model,
cluster, product, span, parent, trace, role, outcome.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from analytics.dialects.base import Record, Seen, identity

AGENT, WORKFLOW, STEP = "agent", "workflow", "step"  # roles of a node


def seen(
    kind: str, group: str, identifier: str, record: Record, at: int | None, data: dict[str, Any]
) -> Seen:
    """A `Seen` with everything in `data` that is known. It keeps `data`: give it one of its own."""
    data["origin"] = record.source._value_
    if None in data.values():
        for name in [name for name, value in data.items() if value is None]:
            del data[name]
    return Seen(group=group, id=f"{kind}:{identifier}", kind=kind, at=at, data=data)


def span_fields(record: Record) -> dict[str, Any]:
    """Where a span stands, and when."""
    return {
        "span": record.span_id or None,
        "parent": record.parent_id or None,
        "trace": record.trace_id or None,
        "start": record.started_at,
        "end": record.at,
    }


@lru_cache(maxsize=1024)  # every record names one of few
def cluster(user: str) -> str:
    """What stands for a user or an installation."""
    return identity(user)[:16]


def session_group(session: str) -> str:
    """The group of everything that names its session."""
    return f"session:{session}"


def trace_group(trace: str) -> str:
    """The group of spans whose session is known only from other spans of the trace."""
    return f"trace:{trace}"


def content_id(record: Record) -> str:
    """An id for a log record without one: the same record sent again has the same."""
    parts = [str(record.at), record.trace_id, record.span_id, record.name]
    parts += [f"{key}={record.attributes[key]!r}" for key in sorted(record.attributes)]
    return identity("\0".join(parts))
