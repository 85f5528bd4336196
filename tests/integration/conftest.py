"""One run of the bench for all tests that look at what it left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.integration.bench import Bench, run
from tools.integration.components import Components, find

TEXTFILE = """\
# TYPE turncap_snapshot_published_timestamp_seconds gauge
turncap_snapshot_published_timestamp_seconds 1000000000
# TYPE turncap_snapshot_newest_turn_timestamp_seconds gauge
turncap_snapshot_newest_turn_timestamp_seconds 1000000000
# TYPE turncap_verdict_rank gauge
turncap_verdict_rank{question="soft_cap"} 2
"""


@pytest.fixture(scope="session")
def components() -> Components:
    """The programs of the bench; `make integration` builds them."""
    found = find()
    if found is None:
        pytest.skip("the Collector and Prometheus are not built: make integration")
    return found


@pytest.fixture(scope="session")
def bench(components: Components, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """The workload has been played; every Prometheus still answers."""
    folder: Path = tmp_path_factory.mktemp("bench")
    with run(components, folder, TEXTFILE) as bench:
        yield bench
