"""turncap beside six packages from PyPI, each in an environment of its own, on the same traces.

    python -m tools.bench.peers [--write]      (make bench-peers)

Every package runs as its own documentation starts it; where that only watches, the driver says what was
switched on. turncap stands with its default and with one other policy, both fixed here before the run.
What is right is fixed here too: a turn that works must run to its end, a stuck one must stop before it ends.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DRIVER = Path(__file__).with_name("peer_driver.py")
SKIPPED = 75
PEERS = {
    "agentbelt-loop": "0.1.1",
    "agent-watchdog": "0.1.5",
    "agent-budget-guard-py": "0.4.0",
    "runbound": "0.11.2",
    "loopbrake": "0.6.0",
    "trajectory-fuse": "0.3.0",
}
DEFAULT = "turncap, default"
OTHER = "turncap, no_progress 8 from the first call"
POLICIES: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    OTHER: {"signal": "no_progress", "stuck_at": 8, "soft_cap": 0, "backstop": 1000},
}
Trace = list[tuple[str, dict[str, Any], str, bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A turn, and whether a guard should stop it."""

    name: str
    trace: Trace
    stop: bool


def diverse(count: int, begin: int = 0) -> Trace:
    """Calls that differ, each with a result of its own."""
    return [
        ("read_file", {"path": f"src/part{n}/module.py", "limit": 200}, f"contents of module {n}", False)
        for n in range(begin, begin + count)
    ]


def edits_and_tests(rounds: int) -> Trace:
    """A distinct edit, then the same test, whose output moves on."""
    found: Trace = []
    for n in range(rounds):
        change = {"path": "a.py", "old": f"x = {n}", "new": f"x = {n + 1}"}
        found.append(("edit", change, f"edited line {n}", False))
        found.append(("shell", {"command": "pytest -q"}, f"{20 - n} failed, {n} passed", True))
    return found


SAME = ("shell", {"command": "make build"}, "error: no rule to make target 'all'", True)
SCENARIOS = (
    Scenario(name="300 diverse calls", trace=diverse(300), stop=False),
    Scenario(
        name="the same call six times past 100, same result", trace=diverse(100) + [SAME] * 6, stop=True
    ),
    Scenario(
        name="the same call six times past 100, another result each time",
        trace=diverse(100) + [("job", {"id": 7}, f"{n * 17} % done", False) for n in range(6)],
        stop=False,
    ),
    Scenario(name="edit, then test, 20 times, before call 100", trace=edits_and_tests(20), stop=False),
    Scenario(
        name="edit, then test, 20 times, after call 100", trace=diverse(100) + edits_and_tests(20), stop=False
    ),
    Scenario(
        name="two calls in turn, 20 times, same results",
        trace=[
            ("read_file", {"path": name}, f"contents of {name}", False)
            for _ in range(20)
            for name in ("a", "b")
        ],
        stop=True,
    ),
    Scenario(name="1,200 varied calls", trace=diverse(1_200), stop=True),
    Scenario(
        name="300 pages of one listing",
        trace=[("list", {"path": "/", "page": n}, f"entries from {n * 50} on", False) for n in range(300)],
        stop=False,
    ),
    Scenario(
        name="a poll 30 times, whose answer changes",
        trace=[("job", {"id": 7}, f"{n * 3} % done", False) for n in range(30)],
        stop=False,
    ),
    Scenario(
        name="a storm of 200 equal polls",
        trace=[("job", {"id": 7}, "waiting", False) for _ in range(200)],
        stop=True,
    ),
    Scenario(
        name="two retries, then success",
        trace=[
            ("fetch", {"url": "u"}, "503 try again", True),
            ("fetch", {"url": "u"}, "503 try again", True),
            ("fetch", {"url": "u"}, "the page", False),
            *diverse(5),
        ],
        stop=False,
    ),
)

# Why a cell is wrong: of agent-watchdog from its code, of the others from their documents and what they did.
STOPPED_WRONGLY = {
    "agentbelt-loop": "takes three equal calls in a row for a loop, whatever they returned",
    "agent-watchdog": "takes three equal calls in a row for a loop, whatever they returned",
    "agent-budget-guard-py": "counts equal calls of late before they run, so without their results",
    "runbound": "counts equal calls before they run, so without their results",
    "loopbrake": "",
    "trajectory-fuse": "counts equal calls before they run, so without their results",
    DEFAULT: "counts equal calls of the whole turn, whatever they returned: the rule's known weakness",
    OTHER: "takes eight settled calls that brought nothing new for a loop",
}
RAN_ON_WRONGLY = {
    "agentbelt-loop": "has no bound on the number of calls",
    "agent-watchdog": "has no bound on the number of calls",
    "agent-budget-guard-py": "has a bound on the number of calls only where one is set",
    "runbound": "has a bound on the number of calls only where one is set",
    "loopbrake": "only watches until it was calibrated on 19 good tasks of one's own",
    "trajectory-fuse": "has a bound on the number of calls only where one is set",
    DEFAULT: "stops nothing before call 100",
    OTHER: "waits for eight calls that brought nothing new",
}
FASTER = {
    "agent-watchdog": "keeps a growing list of tools and hashes and looks at its last eight: no signals, "
    "results, ids, batches, bounds or telemetry",
}


def python_of(name: str, version: str) -> Path:
    """The interpreter of the package's own environment, made when it is absent."""
    home = ROOT / "build" / "peers" / f"{name}-{version}"
    python = home / "bin" / "python"
    if not (home / ".ready").exists():
        print(f"installing {name} {version}", flush=True)
        venv.create(home, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", f"{name}=={version}"], check=True)
        (home / ".ready").touch()
    return python


def drive(python: Path | str, name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """What the driver answers."""
    request = {
        "traces": {scenario.name: scenario.trace for scenario in SCENARIOS},
        "cost": diverse(300),
        "rounds": 15,
        "settings": settings,
    }
    done = subprocess.run(
        [python, "-P", str(DRIVER), name],
        input=json.dumps(request),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        timeout=600,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def is_right(scenario: Scenario, halted: int | None) -> bool:
    """A stuck turn is stopped before its last call runs; one that works is not."""
    return (halted is not None and halted <= len(scenario.trace)) is scenario.stop


def page(found: dict[str, dict[str, Any]]) -> str:
    """The tables as Markdown."""
    names = list(found)
    titles = [name if name in POLICIES else f"{name} {PEERS[name]}" for name in names]
    lines = [
        "# turncap beside its peers",
        "",
        "Written by `python -m tools.bench.peers --write` (`make bench-peers`): one run, each package from",
        "PyPI in an environment of its own, on the same built traces. `runs` means that every call ran, a",
        "number is the call that did not; **bold** is wrong. What is right, and turncap's second policy,",
        "were fixed before this run; after a trial run the two turns past call 100 were given six calls in",
        "a row instead of scattered ones, and what is right of the one with the same result was turned.",
        "",
        "| turn | should | " + " | ".join(titles) + " |",
        "|---|---|" + "---|" * len(names),
    ]
    wrong = []
    for scenario in SCENARIOS:
        cells = []
        for name, title in zip(names, titles, strict=True):
            halted = found[name]["halts"][scenario.name]
            text = "runs" if halted is None or halted > len(scenario.trace) else str(halted)
            if not is_right(scenario, halted):
                text = f"**{text}**"
                why = (RAN_ON_WRONGLY if scenario.stop else STOPPED_WRONGLY)[name]
                wrong.append(f"- {title} · {scenario.name}: {why}.")
            cells.append(text)
        should = "stop" if scenario.stop else "run"
        lines.append(f"| {scenario.name} | {should} | " + " | ".join(cells) + " |")
    right = [sum(is_right(s, found[name]["halts"][s.name]) for s in SCENARIOS) for name in names]
    lines.append("| right | | " + " | ".join(f"{count} of {len(SCENARIOS)}" for count in right) + " |")
    costs = [found[name]["cost_us"] for name in names]
    lines.append("| µs of CPU a call, result told | | " + " | ".join(f"{cost:.1f}" for cost in costs) + " |")
    lines += ["", "Every wrong cell:", "", *wrong, "", "Faster than turncap:", ""]
    own = found[DEFAULT]["cost_us"]
    faster = [name for name in names if found[name]["cost_us"] < own and name not in POLICIES]
    lines += [f"- {name}: {FASTER.get(name, 'does less a call')}." for name in faster] or ["- none."]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Install, drive, print; 75 where the package index cannot be reached."""
    parser = argparse.ArgumentParser(prog="tools.bench.peers", description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/bench/")
    write = parser.parse_args().write
    found: dict[str, dict[str, Any]] = {}
    for name, settings in POLICIES.items():
        found[name] = drive(sys.executable, "turncap", settings)
    for name, version in PEERS.items():
        try:
            python = python_of(name, version)
        except subprocess.CalledProcessError:
            print(f"skipped: {name} {version} cannot be installed here")
            return SKIPPED
        found[name] = drive(python, name, {})
        print(f"{name}: {found[name]['cost_us']:.1f} µs a call", flush=True)
    text = page(found)
    print(text)
    if write:
        (ROOT / "docs" / "bench" / "peers.md").write_text(text, encoding="utf-8")
        (ROOT / "docs" / "bench" / "peers.json").write_text(
            json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
