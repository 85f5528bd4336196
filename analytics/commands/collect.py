"""`turncap collect`: receive OTLP over HTTP and write files to load, until told to stop."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from pathlib import Path

from analytics.collect import Collector, Counts
from analytics.commands.arguments import whole

_STOP = {signal.SIGTERM, signal.SIGINT}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the files go")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1; there is no TLS)"
    )
    parser.add_argument(
        "--port", type=whole(0, 65535), default=4318, help="default: 4318; 0 takes any free port"
    )
    parser.add_argument(
        "--max-megabytes",
        type=whole(1, 1_000_000),
        default=100,
        metavar="N",
        help="begin a new file past this size (default: 100)",
    )


def run(args: argparse.Namespace) -> int:
    """Print the address, receive until SIGTERM or SIGINT, print what came."""
    logging.basicConfig(level=logging.WARNING, format="turncap: %(message)s", stream=sys.stderr)
    # Blocked before any thread starts, so that every one inherits it and only `sigwait` gets them.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP)
    try:
        return _receive(args)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _receive(args: argparse.Namespace) -> int:
    with Collector(args.out, host=args.host, port=args.port, max_megabytes=args.max_megabytes) as collector:
        print(collector.url, flush=True)
        print(f"writing {args.out}/logs.jsonl, traces.jsonl, metrics.jsonl; Ctrl-C stops", flush=True)
        signal.sigwait(_STOP)
    print(_summary(collector.counts), flush=True)
    return 0


def _summary(counts: Counts) -> str:
    text = f"received {counts.records} log records, {counts.spans} spans, {counts.points} metric points"
    if counts.refused:
        refused = ", ".join(f"{status}: {number}" for status, number in sorted(counts.refused.items()))
        text += f"; refused requests by status: {refused}"
    return text
