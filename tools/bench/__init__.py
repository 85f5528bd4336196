"""What `docs/bench.md` says, measured: each module is a program of its own and names its bars."""
