"""The products whose telemetry and transcripts can be read; `base` says how one is added.

turncap's own telemetry is no member of `DIALECTS`: it is recognised first, by its names, and read in
bulk (`analytics.dialects.turncap`).
"""

from __future__ import annotations

from analytics.dialects.base import Dialect

# In the order in which a record is offered to them: the narrower name first.
DIALECTS: tuple[Dialect, ...] = ()
