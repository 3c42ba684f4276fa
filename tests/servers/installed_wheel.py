"""The wheel of this code, and environments of their own in which it is installed."""

import fcntl
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterable, Sequence
from functools import cached_property
from importlib.metadata import Distribution, PathDistribution, distribution
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests import forks
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


class Wheel:
    """The wheel of this code, and a folder with what it holds, compiled, as pip installs it."""

    def __init__(self, folder: Path) -> None:
        (self.path,) = folder.glob("tailrace-*.whl")
        self.files = folder / "files"


def wheel_of(run: pytest.TempPathFactory) -> Wheel:
    """Return the wheel, which is built once for all processes of this run of the tests."""
    of_process = run.getbasetemp()
    of_run = of_process.parent if "PYTEST_XDIST_WORKER" in os.environ else of_process
    folder = of_run / "wheel-of-all-tests"
    with of_run.joinpath("wheel.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            unfinished = run.mktemp("wheel")
            built = _build(unfinished)
            files = unfinished / "files"
            zipfile.ZipFile(built).extractall(files)
            _compile(files)
            unfinished.rename(folder)
    return Wheel(folder)


def _compile(files: Path) -> None:
    """Add what Python has compiled of the same files here. Python does not use what has another
    time or size than the file."""
    for file in files.glob("tailrace/**/*.py"):
        source = ROOT / file.relative_to(files / "tailrace")
        compiled = Path(cache_from_source(str(source)))
        if compiled.exists():
            os.utime(file, (source.stat().st_atime, source.stat().st_mtime))
            copy = Path(cache_from_source(str(file)))
            copy.parent.mkdir(exist_ok=True)
            shutil.copy(compiled, copy)


def _build(folder: Path) -> Path:
    """Build the wheel in `folder`, as pip does without the network; return its path."""
    copy_project(folder / "source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "source")
    code = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", code, folder],
        cwd=folder / "source", check=True, capture_output=True,
        env={**os.environ, "PYTHONPATH": ""},
    )  # fmt: skip
    (built,) = folder.glob("tailrace-*.whl")
    return built


class Environment:
    """A Python with the wheel, and an empty folder to work in."""

    def __init__(self, python: Path, work: Path) -> None:
        self.python, self.work = python, work
        self.work.mkdir()

    @cached_property
    def server(self) -> forks.Server:
        """Forks processes of this Python, which has imported the packages of others."""
        return forks.Server("what is there", self.variables(), python=self.python)

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run Python in the empty folder, with no variables but those that every process has."""
        return forks.run(
            words, cwd=self.work, env=self.variables() | variables, server=self.server,
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip

    def start_and_run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """The same in a process that is no fork, and imports all by itself."""
        return subprocess.run(
            [self.python, *words], cwd=self.work, env=self.variables() | variables,
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip

    def end(self) -> None:
        """End what it has started for its runs."""
        if "server" in vars(self):
            self.server.end()

    def variables(self) -> dict[str, str]:
        return {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}


class Installed(Environment):
    """An environment of its own, with the wheel and what the core and some extras need."""

    def __init__(self, folder: Path, wheel: Wheel, extras: Sequence[str] = ()) -> None:
        super().__init__(folder / "venv/bin/python", folder / "work")
        venv.create(folder / "venv", symlinks=True)
        (self.site,) = (folder / "venv").glob("lib/python*/site-packages")
        shutil.copytree(wheel.files, self.site, copy_function=os.link, dirs_exist_ok=True)
        (info,) = self.site.glob("tailrace-*.dist-info")
        self.packages = closure(PathDistribution(info).requires or [], extras)
        for package in self.packages.values():
            self._link(package)

    def _link(self, package: Distribution) -> None:
        for top in {file.parts[0] for file in package.files or []} - {"..", "__pycache__"}:
            if not (self.site / top).exists():
                (self.site / top).symlink_to(str(package.locate_file(top)))
