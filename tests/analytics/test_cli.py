"""The command line says what it can do, and what was probably meant."""

from __future__ import annotations

import subprocess
import sys

import pytest

from analytics.cli import COMMANDS, ExitCode, main


def test_help_tells_the_commands_in_the_order_of_the_story(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    text = capsys.readouterr().out
    assert left.value.code == 0
    places = [text.index(f"\n  {name} ") for name in COMMANDS]
    assert places == sorted(places)
    assert "exit codes: 0 done" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([name, "--help"])
    assert left.value.code == 0
    assert COMMANDS[name][1:] in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["reprot"], "no command 'reprot'; did you mean 'report'?", id="a near command"),
        pytest.param(["xyzzy"], "no command 'xyzzy'; there are demo,", id="no near command"),
        pytest.param(["turn", "1", "--db", "x", "--ouy", "y"], "did you mean --out?", id="a near option"),
        pytest.param(["completion", "bsh"], "no choice 'bsh'; did you mean 'bash'?", id="a near choice"),
        pytest.param(["snapshot", "--db", "x"], "arguments are required: --out", id="a missing option"),
        pytest.param([], "give a command; turncap --help lists them", id="nothing"),
    ],
)  # fmt: skip
def test_wrong_usage_is_answered_with_what_was_meant(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == ExitCode.USAGE
    output = capsys.readouterr()
    assert said in output.err
    assert output.out == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(name in script for name in COMMANDS)
    assert "--db" in script


def test_a_reader_that_leaves_early_is_no_error() -> None:
    writer = subprocess.Popen(
        [sys.executable, "-m", "analytics", "completion", "bash"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert writer.stdout is not None
    assert writer.stderr is not None
    writer.stdout.close()
    with writer.stderr as said:
        assert said.read() == b""
    assert writer.wait() == ExitCode.DONE
