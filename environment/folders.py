"""Where the project is, and the folder that it writes to."""

import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent


def var_dir() -> Path:
    """Return the folder of everything that is written: TAILRACE_VAR, or var/ of the project."""
    return Path(os.environ.get("TAILRACE_VAR", "").strip() or BASE_DIR / "var").resolve()
