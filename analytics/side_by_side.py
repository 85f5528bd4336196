"""The signals side by side: the same turns under each of them."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from analytics.recording import Bools, Label
from analytics.replay import Replay
from analytics.totals import totals
from guard.policy import SIGNALS, CapPolicy

STUCK_AT = (6, 8, 12, 20)
SOFT_CAPS = (0, 50)  # and the running one

# What is known to look stuck to a signal and is not: seen in no turn, its zeros prove nothing.
HURT_BY = {
    "repeat": ("rerun", "poll"),
    "recent_repeat": ("rerun", "poll"),
    "novelty_repeat": ("poll",),
    "same_result_repeat": ("poll",),
    "no_progress": ("poll",),
}


def signals(
    replay: Replay,
    *,
    soft_cap: int,
    backstop: int,
    stuck_at: Sequence[int] = STUCK_AT,
    among: Bools | None = None,
) -> pd.DataFrame:
    """Every signal at every K and S, the backstop held: one row each.

    Columns: signal, k, soft_cap, backstop; stuck_caught, others_halted (turns), calls_saved, calls_cut;
    the same with `_most` where the rest of a turn is hidden; undecided (turns), badge; stuck_turns and
    other_turns, of how many; unseen, the kinds known to hurt the signal that no label names.
    """
    caps = sorted({*SOFT_CAPS, soft_cap})
    grid = [
        CapPolicy.adaptive(signal=signal, stuck_at=k, soft_cap=cap, backstop=max(backstop, cap))
        for signal in SIGNALS
        for k in stuck_at
        for cap in caps
    ]
    found = totals(replay, grid, among=among)
    chosen = replay.turns.label if among is None else replay.turns.label[among]
    seen = set(kinds_seen(replay, among))
    return pd.DataFrame({
        **{name: found[name] for name in ("signal", "k", "soft_cap", "backstop")},
        "stuck_caught": found["stuck"],
        "others_halted": found["not_stuck"] + found["unlabelled"],
        "calls_saved": found["calls_saved"],
        "calls_cut": found["calls_cut"],
        "stuck_caught_most": found["stuck_most"],
        "others_halted_most": found["not_stuck_most"] + found["unlabelled_most"],
        "calls_saved_most": found["calls_saved_most"],
        "calls_cut_most": found["calls_cut_most"],
        "undecided": found["undecided"],
        "badge": found["badge"],
        "stuck_turns": int((chosen == Label.STUCK).sum()),
        "other_turns": int((chosen != Label.STUCK).sum()),
        "unseen": [tuple(kind for kind in HURT_BY[name] if kind not in seen) for name in found["signal"]],
    })  # fmt: skip


def kinds_seen(replay: Replay, among: Bools | None = None) -> dict[str, int]:
    """Turns of each kind that labels name; `unlabelled` are the rest."""
    kinds = pd.Series(replay.turns.kind if among is None else replay.turns.kind[among], dtype=object)
    counts = kinds.fillna("unlabelled").value_counts()
    return {str(kind): int(turns) for kind, turns in counts.items()}
