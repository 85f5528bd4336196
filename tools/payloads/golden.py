"""Write tests/data/dialects/golden.json: what the dialects make of each payload. Read the difference.

    python -m tools.payloads.golden

Every turn in it can be checked against the script that its program followed (SCRIPTS in `make`, PROGRAMS in
`clis`, SCRIPT in `frameworks`): which calls, which of them equal, which failed, whose turn they are.
"""

from __future__ import annotations

import json

from tests.analytics.dialects.reading import DATA, cases, summary, turns


def main() -> None:
    """One line a turn."""
    lines = []
    for name, paths in cases().items():
        told = ",\n  ".join(json.dumps(summary(turn), ensure_ascii=False) for turn in turns(*paths))
        lines.append(f"{json.dumps(name)}: [\n  {told}\n]" if told else f"{json.dumps(name)}: []")
    (DATA / "golden.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
