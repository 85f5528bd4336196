"""The line that says how far a load is."""

from __future__ import annotations

import io

from analytics.progress import Progress


class Clock:
    """Moved by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_share_rate_and_time_left() -> None:
    stream, clock = io.StringIO(), Clock()
    progress = Progress(stream, 1_000_000_000, clock)
    clock.now = 2.0
    progress(250_000_000)
    assert stream.getvalue() == "\r██████░░░░░░░░░░░░░░░░░░  25%  250 MB, 125 MB/s, 6 s left"


def test_long_waits_are_in_minutes_and_the_end_has_none() -> None:
    stream, clock = io.StringIO(), Clock()
    progress = Progress(stream, 10**10, clock)
    clock.now = 10.0
    progress(10**8)
    assert stream.getvalue().endswith("16 min 30 s left")
    clock.now = 20.0
    progress(10**10)
    assert stream.getvalue().rstrip().endswith("500 MB/s")


def test_it_draws_a_few_times_a_second_and_wipes_what_it_drew() -> None:
    stream, clock = io.StringIO(), Clock()
    progress = Progress(stream, 100, clock)
    for step in range(100):
        clock.now = step / 1000
        progress(step)
    assert stream.getvalue().count("\r") == 1
    progress(100, "deriving 7 turns")
    assert "deriving 7 turns" in stream.getvalue()
    progress.close()
    assert stream.getvalue().split("\r")[-1] == ""
    assert stream.getvalue().split("\r")[-2].strip() == ""


def test_what_has_no_end_shows_no_share() -> None:
    stream, clock = io.StringIO(), Clock()
    progress = Progress(stream, 0, clock)
    clock.now = 1.0
    progress(5_000_000)
    assert stream.getvalue() == "\r5 MB, 5 MB/s"
