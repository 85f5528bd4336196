"""What the tests of the dashboards read: the bundled turns as a database."""

from __future__ import annotations

from tests.analytics.conftest import evidence_db

__all__ = ["evidence_db"]
