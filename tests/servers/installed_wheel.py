"""The wheel of this code, and environments of their own in which it is installed."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterable, Sequence
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

from tests.config.copied_project import copy_project
from tests.kit import ROOT


def closure(requirements: Iterable[str], extras: Sequence[str] = ()) -> dict[str, Distribution]:
    """Return what these requirements bring with them, of what is installed here, by name."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, tuple[str, ...]]] = set()
    waiting = [(line, tuple(extras)) for line in requirements]
    while waiting:
        line, wanted = waiting.pop()
        needed = Requirement(line)
        if needed.marker and not any(needed.marker.evaluate({"extra": e}) for e in ("", *wanted)):
            continue
        key = needed.name.lower(), tuple(sorted(needed.extras))
        if key in seen:
            continue
        seen.add(key)
        found[key[0]] = distribution(needed.name)
        waiting += [(each, key[1]) for each in found[key[0]].requires or []]
    return found


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this code in `folder`, without the network; return its path."""
    copy_project(folder / "source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source")
    arguments = ["wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run(
        [sys.executable, "-m", "pip", *arguments, "--wheel-dir", folder, folder / "source"],
        check=True, capture_output=True, env={**os.environ, "PYTHONPATH": ""},
    )  # fmt: skip
    (built,) = folder.glob("tailrace-*.whl")
    return built


class Environment:
    """A Python with the wheel, and an empty folder to work in."""

    def __init__(self, python: Path, work: Path) -> None:
        self.python, self.work = python, work
        self.work.mkdir()

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run Python in the empty folder, with no variables but those that every process has."""
        return subprocess.run(
            [self.python, *words], cwd=self.work, env=self.variables() | variables,
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip

    def variables(self) -> dict[str, str]:
        return {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}


class Installed(Environment):
    """An environment of its own, with the wheel and what the core and some extras need."""

    def __init__(self, folder: Path, wheel: Path, extras: Sequence[str] = ()) -> None:
        super().__init__(folder / "venv/bin/python", folder / "work")
        venv.create(folder / "venv", symlinks=True)
        (self.site,) = (folder / "venv").glob("lib/python*/site-packages")
        zipfile.ZipFile(wheel).extractall(self.site)
        (info,) = self.site.glob("tailrace-*.dist-info")
        self.packages = closure(PathDistribution(info).requires or [], extras)
        for package in self.packages.values():
            self._link(package)

    def _link(self, package: Distribution) -> None:
        for top in {file.parts[0] for file in package.files or []} - {"..", "__pycache__"}:
            if not (self.site / top).exists():
                (self.site / top).symlink_to(str(package.locate_file(top)))
