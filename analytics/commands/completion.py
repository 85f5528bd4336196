"""`turncap completion`: a shell's completion script, made from the parser itself."""

from __future__ import annotations

import argparse

import shtab

EPILOG = """\
bash:  turncap completion bash > ~/.local/share/bash-completion/completions/turncap
zsh:   turncap completion zsh > a folder of $fpath, as _turncap
fish:  turncap completion fish > ~/.config/fish/completions/turncap.fish
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("shell", choices=shtab.SUPPORTED_SHELLS, help="the shell to write for")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from analytics.cli import build_parser

    print(shtab.complete(build_parser(), shell=args.shell))
    return 0
