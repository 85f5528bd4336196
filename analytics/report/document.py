"""A WeeklyReport as the JSON document whose shape report.schema.json fixes: plain names, a row a finding.

The shape is versioned. Adding an optional field keeps the version; removing, renaming or re-meaning one
does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from analytics.decision import Costed, Recommendation
from analytics.false_stuck import RULES
from analytics.report.value import WeeklyReport
from analytics.validation.rates import Share
from analytics.validation.verdicts import Verdict
from guard.policy import CapPolicy

SCHEMA = 1

# Fields of the report that the document has in a shape of its own, or not at all: `drawn` and `examples`.
OTHERWISE = {
    "gates", "verdicts", "strata", "decision", "costed", "grid", "backstops", "signals", "drawn", "examples"
}  # fmt: skip


def document(report: WeeklyReport) -> dict[str, Any]:
    """The report as JSON has it, its sections in reading order."""
    return {
        "schema": SCHEMA,
        **{name: value for name, value in plain(report).items() if name not in OTHERWISE},
        "gates": plain(report.gates),
        "verdicts": [_verdict(verdict) for verdict in report.verdicts],
        "strata": [
            {"name": one.name, "turns": one.turns, "rates": [_rate(share, None) for share in one.shares]}
            for one in report.strata
        ],
        "false_stuck_rules": [
            {"kind": str(rule.kind), "because": rule.because, "conditions": [c.text for c in rule.conditions]}
            for rule in RULES
        ],
        "signals": plain(report.signals),
        "grid": [_costed(one) for one in report.costed],
        "recommendation": recommendation(report.decision),
    }


def plain(value: Any) -> Any:
    """The value as JSON has it: a policy as its canonical text, dataclasses as objects."""
    if isinstance(value, CapPolicy):
        return value.text
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(one) for one in value]
    return value


def _verdict(verdict: Verdict) -> dict[str, Any]:
    """One question; `estimate` to `clusters` and `tolerance` are those of the first of `rates`."""
    share = verdict.first
    return {
        "question": str(verdict.question),
        "running": verdict.running,
        "verdict": str(verdict.word),
        "lean": str(verdict.lean),
        "estimate": share.estimate,
        "low": share.low,
        "high": share.high,
        "n": round(share.n),
        "clusters": share.clusters,
        "tolerance": verdict.tolerances[0],
        "rates": [_rate(one, limit) for one, limit in zip(verdict.shares, verdict.tolerances, strict=True)],
        "by_task": [_rate(one, None) for one in verdict.by_task],
        "look": plain(verdict.look),
        "needed": plain(verdict.needed),
        "suggested": verdict.suggested,
        "alike": list(verdict.alike),
        "reasons": list(verdict.reasons),
        "scope": plain(verdict.scope),
    }


def _rate(share: Share, tolerance: float | None) -> dict[str, Any]:
    return {
        "name": share.name,
        "events_least": share.least,
        "events_most": share.most,
        "n": round(share.n),
        "clusters": share.clusters,
        "estimate": share.estimate,
        "low": share.low,
        "high": share.high,
        "tolerance": tolerance,
        "basis": share.basis,
    }


def _costed(one: Costed) -> dict[str, Any]:
    return {
        "signal": one.policy.signal,
        "k": one.policy.stuck_at,
        "soft_cap": one.policy.soft_cap,
        "backstop": one.policy.backstop,
        "turns": one.stuck + one.not_stuck + one.unlabelled,
        "stuck": one.stuck,
        "not_stuck": one.not_stuck,
        "unlabelled": one.unlabelled,
        "calls_saved": one.calls_saved,
        "calls_cut": one.calls_cut,
        "cost": one.cost,
        "other_costs": [{"wrong_halt": price, "cost": cost} for price, cost in one.other_costs],
        "break_even": one.break_even,
        "badge": one.badge,
    }


def recommendation(decision: Recommendation) -> dict[str, Any]:
    """The decision as the section of that name has it."""
    leading, policy = decision.leading, decision.policy
    return {
        "answer": str(decision.answer),
        "reason": decision.reason,
        "policy": None if policy is None else policy.text,
        "settings": decision.settings or None,
        "running": _costed(decision.running),
        "leading": None if leading is None else _costed(leading),
        "saves": plain(decision.saves),
        "price": plain(decision.price),
        "frontier": [_costed(one) for one in decision.frontier],
    }
