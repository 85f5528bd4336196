"""Write every generated file of `dashboards/` (`make dashboards`)."""

from __future__ import annotations

import json
from pathlib import Path

from tools.dashboards.model import Dashboard
from tools.dashboards.operations import OPERATIONS
from tools.dashboards.rules import to_yaml
from tools.dashboards.turn import ONE_TURN
from tools.dashboards.validation import VALIDATION, VALIDATION_JSON

HOME = Path(__file__).resolve().parents[2] / "dashboards"
DASHBOARDS: dict[str, Dashboard] = {
    "operations": OPERATIONS,
    "validation": VALIDATION,
    "validation-json": VALIDATION_JSON,
    "turn": ONE_TURN,
}


def generated() -> dict[str, str]:
    """What each generated file holds, by its path below `dashboards/`."""
    dashboards = {
        f"grafana/{name}.json": json.dumps(dashboard.to_json(), indent=2, ensure_ascii=False) + "\n"
        for name, dashboard in DASHBOARDS.items()
    }
    return dashboards | {f"prometheus/{name}": text for name, text in to_yaml().items()}


def main() -> None:
    """Write the files; those that nothing generates any more are the reader's to delete."""
    for name, text in generated().items():
        path = HOME / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(HOME.parent))


if __name__ == "__main__":
    main()
