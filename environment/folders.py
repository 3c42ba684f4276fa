"""The folder of the project, and the folder for the files that it writes."""

import os
from pathlib import Path

PACKAGE_DIR = Path(__file__).absolute().parent.parent
"""The folder that is imported as `tailrace`."""
_CHECKOUT = PACKAGE_DIR.parent.parent
IS_CHECKOUT = (_CHECKOUT / "src" / "tailrace").exists()
"""Whether this is a checkout of Tailrace, not an installed package."""
BASE_DIR = _CHECKOUT if IS_CHECKOUT else Path.cwd()
"""The checkout of Tailrace, or the current folder if Tailrace is installed as a package."""


def var_dir() -> Path:
    """Return the folder for all files that Tailrace writes: TAILRACE_VAR, or var/ in BASE_DIR."""
    return Path(os.environ.get("TAILRACE_VAR", "").strip() or BASE_DIR / "var").resolve()
