"""`turncap` and `python -m analytics`."""

from __future__ import annotations

import sys

from analytics.cli import main

if __name__ == "__main__":
    sys.exit(main())
