"""The bundled turns as a database, built once a test run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.analytics.evidence_db import build


@pytest.fixture(scope="session")
def evidence_db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of all bundled turns; open it read-only."""
    return build(tmp_path_factory.mktemp("evidence") / "turns.duckdb")
