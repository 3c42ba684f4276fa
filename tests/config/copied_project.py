"""A copy of the project in a folder of a test: a fresh clone, which shares our packages."""

import shutil
from pathlib import Path

from tests.kit import ROOT

PACKAGES = (
    "config", "db", "domains", "environment", "events", "jobs", "net", "samples", "subscriptions",
    "web",
)  # fmt: skip
_IGNORED = shutil.ignore_patterns("__pycache__")


def copy_project(folder: Path) -> None:
    """Copy the code, without its tests."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / package, ignore=_IGNORED)
    shutil.copytree(ROOT / "src", folder / "src", symlinks=True, ignore=_IGNORED)
    shutil.copy(ROOT / "manage.py", folder)


def copy_tests(folder: Path) -> None:
    """Copy the tests, too."""
    shutil.copytree(ROOT / "tests", folder / "tests", ignore=_IGNORED)
    for name in ("conftest.py", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, folder)
