"""The README's table of what turncap emits, from `guard/registry.yaml`.

python -m tools.registry_table          # print it
python -m tools.registry_table --write  # put it between the marks in README.md
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
MARKS = re.compile(r"(?s)(<!-- registry -->\n).*?(<!-- /registry -->)")


def table() -> str:
    """Events, spans and metrics, a row each, with their attributes (the prefix `turncap.` left out)."""
    groups: list[dict[str, Any]] = yaml.safe_load((ROOT / "guard" / "registry.yaml").read_text())["groups"]
    events = [group for group in groups if group["type"] == "event"]
    common = set.intersection(*({a["ref"] for a in event["attributes"]} for event in events))
    lines = [
        f"On every event: {_named(a['ref'] for a in events[0]['attributes'] if a['ref'] in common)}.",
        "",
        "| event | says | attributes |",
        "|---|---|---|",
    ]
    for event in events:
        own = _named(a["ref"] for a in event["attributes"] if a["ref"] not in common)
        lines.append(f"| `{event['name']}` | {event['brief']} | {own} |")
    lines += ["", "| span | says |", "|---|---|"]
    lines += [f"| `{group['name']}` | {group['brief']} |" for group in groups if group["type"] == "span"]
    metrics = [group for group in groups if group["type"] == "metric"]
    lines += ["", f"On every metric: {_named(('gen_ai.agent.name', 'gen_ai.request.model'))}.", ""]
    lines += ["| metric | kind, unit | says | attributes |", "|---|---|---|---|"]
    for metric in metrics:
        own = _named(
            name
            for attribute in metric["attributes"]
            if not (name := attribute.get("ref") or attribute["id"]).startswith("gen_ai.")
        )
        kind = f"{metric['instrument']}, `{metric['unit']}`"
        lines.append(f"| `{metric['metric_name']}` | {kind} | {metric['brief']} | {own} |")
    return "\n".join(lines) + "\n"


def _named(names: Any) -> str:
    return ", ".join(f"`{name.removeprefix('turncap.')}`" for name in names) or "–"


def main(words: list[str]) -> int:
    """Print the table, or write it into the README."""
    if words == ["--write"]:
        README.write_text(MARKS.sub(lambda found: found[1] + table() + found[2], README.read_text()))
    else:
        print(table(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
