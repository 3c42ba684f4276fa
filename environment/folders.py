"""The folder of the project, and the folder for the files that it writes."""

import os
from pathlib import Path
from typing import Any

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


def private_files(folder: Path) -> dict[str, Any]:
    """Return an entry of Django's STORAGES: files in this folder that no other user can read."""
    options = {
        "location": folder,
        "file_permissions_mode": 0o600,
        "directory_permissions_mode": 0o700,
    }
    return {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": options}
