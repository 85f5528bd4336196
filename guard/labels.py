"""Ground truth about a turn, checked."""

from __future__ import annotations

import secrets

from guard.errors import PolicyError
from guard.events import TurnLabelled, short

KINDS = ("stuck", "rerun", "poll", "burst", "other")
LABELLERS = ("user", "human", "judge", "import")


def make_label(
    turn_id: str,
    *,
    at: int,
    by: str,
    stuck: bool | None,
    productive: bool | None,
    kind: str | None,
    task_outcome: str | None,
    label_id: str | None,
    judge_version: str | None,
    stratum: str | None,
    probability: float | None,
) -> TurnLabelled:
    """The event. A turn of a guard's carries the guard's id and its number there; others have none.

    Raises:
        PolicyError: a value that is not accepted.
    """
    if by not in LABELLERS:
        raise PolicyError("by", by, ", ".join(LABELLERS))
    if kind is not None and kind not in KINDS:
        raise PolicyError("kind", kind, ", ".join(KINDS))
    for name, value in (("stuck", stuck), ("productive", productive)):
        if value is not None and not isinstance(value, bool):
            raise PolicyError(name, value, "True, False or None")
    numeric = type(probability) in (int, float)
    if probability is not None and not (numeric and 0 < probability <= 1):
        raise PolicyError("probability", probability, "a number above 0, at most 1")
    label_id = short(label_id) or secrets.token_hex(8)
    guard_id, _, seq = str(turn_id).rpartition("-")
    own = bool(guard_id) and seq.isascii() and seq.isdigit() and len(seq) < 19
    return TurnLabelled(
        at=at,
        event_id=f"{short(turn_id)}/label/{label_id}",
        guard_id=guard_id if own else None,
        turn_seq=int(seq) if own else None,
        turn_id=short(turn_id),
        label_id=label_id,
        stuck=stuck,
        productive=productive,
        kind=kind,
        task_outcome=short(task_outcome),
        by=by,
        judge_version=short(judge_version),
        stratum=short(stratum),
        probability=None if probability is None else float(probability),
    )
