"""What real programs and frameworks wrote, made by tools/payloads with a model that is a script."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from analytics.dialects.assemble import assemble
from analytics.dialects.base import StoredSeen
from tests.analytics.dialects.reading import DATA, cases, kept, records, stored, summary, turns

GOLDEN: dict[str, Any] = json.loads((DATA / "golden.json").read_text())

# What the prompts, arguments, results and errors of the scripts say, and where the programs ran.
TEXTS = (
    "please run",
    "echo one",
    "missing.txt",
    "found x",
    "run inner",
    "it broke",
    "try again",
    "/home/user",
    "No such file",
)


def test_every_payload_has_a_golden_result() -> None:
    assert list(cases()) == list(GOLDEN)
    assert len(GOLDEN) > 25


@pytest.mark.parametrize("name", list(GOLDEN))
def test_turns_are_the_golden_ones(name: str) -> None:
    assert [summary(turn) for turn in turns(*cases()[name])] == GOLDEN[name]


@pytest.mark.parametrize("name", [name for name in GOLDEN if name.endswith("together")])
def test_a_session_written_in_several_ways_counts_once(name: str) -> None:
    product = name.removesuffix(" together")
    alone = {kind: GOLDEN[kind] for kind in GOLDEN if kind.startswith(f"{product} ") and kind != name}

    def calls(told: list[dict[str, Any]]) -> int:
        return sum(len(turn["calls"]) for turn in told)

    # Sub-agents' transcripts are files of their own.
    transcripts = sum(
        calls(told) for kind, told in alone.items() if kind.split()[-1] not in ("logs", "traces")
    )
    assert calls(GOLDEN[name]) == max([transcripts, *(calls(told) for told in alone.values())])


@pytest.mark.parametrize("name", list(GOLDEN))
def test_the_order_of_records_and_their_repetition_change_nothing(name: str) -> None:
    found = [record for path in cases()[name] for record in records(path)]
    shuffled = found + random.Random(name).sample(found, len(found) // 2)
    random.Random(name).shuffle(shuffled)
    expected = {group: assemble(seen) for group, seen in stored(found).items()}
    assert {group: assemble(seen) for group, seen in stored(shuffled).items()} == expected


@pytest.mark.parametrize("path", sorted(DATA.glob("*.jsonl.gz")), ids=lambda path: path.name.split(".202")[0])
def test_no_text_of_prompts_arguments_or_results_is_kept(path: Path) -> None:
    told = repr(kept(records(path)))
    told += repr([assemble(seen) for seen in stored(records(path)).values()])
    assert [text for text in TEXTS if text in told] == []


def test_the_payloads_hold_the_texts_that_must_not_be_kept() -> None:
    # Else the test above could not fail.
    everything = repr([record for path in sorted(DATA.glob("*.jsonl.gz")) for record in records(path)])
    assert [text for text in TEXTS if text not in everything] == []


@pytest.mark.parametrize("path", sorted(DATA.glob("*.jsonl.gz")), ids=lambda path: path.name.split(".202")[0])
def test_every_word_that_is_kept_is_known_to_those_who_assemble(path: Path) -> None:
    words = {word for *_, data in kept(records(path)) for word in json.loads(data)}
    assert words <= set(StoredSeen.__struct_fields__)
