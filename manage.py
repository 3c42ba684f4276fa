#!/usr/bin/env python
"""Django's command line in this checkout; `tailrace` is the same command."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "src"))

from tailrace.config.command_line import main

if __name__ == "__main__":
    main()
