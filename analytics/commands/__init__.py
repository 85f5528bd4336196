"""One module a command: `configure(parser)` declares its arguments, `run(args)` returns an exit code."""
