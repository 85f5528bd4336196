"""Nothing that leaves the process holds what calls were asked with, what they returned, or who asked."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from guard import ToolCall, ToolCallGuard
from tests.guard.receiving import Receiver

SECRET = "hunter2-correct-horse"


def forms(secret: str) -> Iterator[bytes]:
    """The secret as it might slip out: itself, encoded, and hashed without a key."""
    plain = secret.encode()
    yield plain
    yield plain[:7]
    yield plain.hex().encode()
    yield base64.b64encode(plain).rstrip(b"=")
    for name in ("md5", "sha1", "sha256", "blake2b", "blake2s"):
        digest = hashlib.new(name, plain)
        yield digest.digest()
        yield digest.hexdigest().encode()[:16]


def planted(receiver: Receiver, **settings: object) -> tuple[ToolCallGuard, bytes]:
    """A guard after a run with the secret wherever text can stand, and a turn's state."""
    guard = receiver.guard(soft_cap=3, stuck_at=2, **settings)
    state = b""
    with suppress(RuntimeError), guard.turn(user=SECRET) as turn:
        for n in range(4):
            verdict = turn.admit("Bash", {"command": SECRET, SECRET: [SECRET, n % 2]}, f"id{n}")
            turn.settle(verdict, result={"out": SECRET})
            turn.settle(verdict, error=ValueError(SECRET))
        turn.admit_batch([ToolCall("Edit", SECRET), ToolCall("Edit", {SECRET})])
        turn.settle("id1", error=SECRET)
        state = turn.to_state()
        raise RuntimeError(SECRET)
    assert turn.outcome == "halted"
    return guard, state


def test_no_secret_leaves_the_process(caplog: pytest.LogCaptureFixture) -> None:
    for signals in ((), ("traces",), ("logs",)):
        receiver = Receiver(*signals)
        guard, state = planted(receiver)
        assert len(receiver.raw) > 1_000
        for form in forms(SECRET):
            assert form not in receiver.raw
        assert SECRET.encode() not in state
        assert SECRET not in caplog.text
        assert SECRET not in repr(guard)


def test_the_unkeyed_hash_that_a_key_is_never_leaves() -> None:
    from guard.keys import call_key

    receiver = Receiver()
    guard = receiver.guard(soft_cap=1, stuck_at=1)
    turn = guard.start_turn()
    for _ in range(3):
        turn.admit("Bash", {"command": SECRET})
    turn.end()
    key = call_key("Bash", {"command": SECRET})
    assert receiver.log("turncap.loop_detected").attributes["turncap.repeat.digest"]
    assert key not in receiver.raw
    assert key.hex().encode() not in receiver.raw


def digests(**settings: object) -> tuple[str, str]:
    """Of one call, and of one user."""
    receiver = Receiver("logs")
    guard = receiver.guard(soft_cap=1, stuck_at=1, **settings)
    turn = guard.start_turn(user="ann")
    turn.admit("Bash", {"command": "ls"})
    turn.admit("Bash", {"command": "ls"})
    turn.end()
    return (
        receiver.log("turncap.loop_detected").attributes["turncap.repeat.digest"],
        receiver.log("turncap.turn.started").attributes["turncap.cluster.id"],
    )


def test_digests_are_keyed_by_the_secret() -> None:
    assert digests(digest_secret="a") == digests(digest_secret="a")
    assert set(digests(digest_secret="a")).isdisjoint(digests(digest_secret="b"))


def test_without_a_secret_digests_agree_in_a_process_and_differ_between_processes() -> None:
    assert digests() == digests()
    program = "from tests.guard.test_privacy import digests; print(*digests())"
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    assert len(printed) == 2
    assert set(printed).isdisjoint(digests())
