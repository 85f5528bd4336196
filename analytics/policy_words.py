"""Policies in words, for people who have not read what a signal is."""

from __future__ import annotations

from guard.policy import CapPolicy, PolicyKind

# What each signal counts, with its threshold.
SIGNALS = {
    "repeat": "one call asked for {k} times",
    "recent_repeat": "one call {k} times among the last 20",
    "novelty_repeat": "one call {k} times since the last new one",
    "same_result_repeat": "one call {k} times in a row with the same result",
    "no_progress": "{k} calls in a row that brought nothing new",
}


def halts_at(policy: CapPolicy) -> str:
    """At what a policy halts."""
    if policy.kind is PolicyKind.HARD:
        return f"more than {policy.hard_cap:,} calls"
    if policy.kind is PolicyKind.DISABLED:
        return "nothing"
    signal = policy.signal or "repeat"
    sign = SIGNALS.get(signal, f"{{k}} by {signal}").format(k=policy.stuck_at)
    if not policy.soft_cap:
        return f"{sign}, from the first call on"
    return f"{sign}, after {policy.soft_cap:,} call{'' if policy.soft_cap == 1 else 's'}"
