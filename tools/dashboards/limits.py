"""The numbers that alerts fire at, in one place: rules, panels' lines and runbooks all quote these."""

from __future__ import annotations

HALT_SHARE = 0.05  # of the turns that ended in an hour
HALT_SHARE_TURNS = 20  # ended turns in that hour, below which a share says nothing
HALTS_FACTOR = 3  # times the mean hour of the day before
HALTS_LEAST = 10  # halts in an hour, below which "more than usual" is noise
SILENT_TURNS = 5  # turns begun in half an hour of which none ended
ERRORS_HOURLY = 5  # faults of one kind in an hour
SNAPSHOT_DAYS = 8  # a weekly snapshot is a day late
