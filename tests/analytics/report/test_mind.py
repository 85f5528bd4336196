"""How far a word is from another is read off the bound that decides it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.report.mind import fewest_above
from analytics.stats import clopper_pearson
from analytics.validation.rates import Share


def _share(n: int, n_eff: float, tail: float = 0.05) -> Share:
    return Share(
        name="FDR", least=0, most=0, n=n, clusters=n, estimate=0.0, low=0.0, high=1.0, n_eff=n_eff, tail=tail,
        basis="all",
    )  # fmt: skip


@settings(deadline=None)
@given(st.integers(1, 60), st.floats(0.2, 1.0), st.floats(0.001, 0.5))
def test_one_event_fewer_leaves_the_bound_within(n: int, worth: float, limit: float) -> None:
    share = _share(n, n * worth)
    events = fewest_above(share, limit)
    lows = [clopper_pearson(x / n * share.n_eff, share.n_eff, tail=share.tail).low for x in range(n + 1)]
    if events is None:
        assert max(lows) <= limit
    else:
        assert lows[events] > limit
        assert events == 0 or lows[events - 1] <= limit


@pytest.mark.parametrize(
    ("n", "limit", "events"),
    [
        pytest.param(10, 0.2, 5, id="5 wrong of 10 halts show that more than a fifth are wrong"),
        pytest.param(0, 0.2, None, id="nothing shows nothing"),
        pytest.param(1, 0.2, None, id="a single halt shows nothing"),
    ],
)
def test_known_numbers(n: int, limit: float, events: int | None) -> None:
    assert fewest_above(_share(n, n), limit) == events
