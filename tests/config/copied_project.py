"""A copy of the project in a folder of a test: a fresh clone, which shares our packages."""

import shutil
from pathlib import Path

from tests.kit import ROOT

PACKAGES = (
    "config", "db", "domains", "environment", "events", "jobs", "net", "samples", "subscriptions",
    "web",
)  # fmt: skip
_WITHOUT_COMPILED = shutil.ignore_patterns("__pycache__")


def copy_project(folder: Path, *, compiled: bool = False) -> None:
    """Copy the code, without its tests. `compiled`: with what Python has compiled of it; that of a
    file that is changed afterwards is not used."""
    ignored = None if compiled else _WITHOUT_COMPILED
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=ignored)
    shutil.copytree(ROOT / "src", folder / "src", symlinks=True, ignore=ignored)
    shutil.copy(ROOT / "manage.py", folder)


def copy_tests(folder: Path, *, compiled: bool = False) -> None:
    """Copy the tests, too."""
    ignored = None if compiled else _WITHOUT_COMPILED
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=ignored)
    for name in ("conftest.py", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, folder)
