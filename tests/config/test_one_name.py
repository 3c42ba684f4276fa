"""Each module has one name: `tailrace.jobs`, and never `jobs` beside it."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tailrace.environment.folders import PACKAGE_DIR
from tests import forks
from tests.config.copied_project import copy_project
from tests.kit import ROOT

pytestmark = pytest.mark.once

PACKAGES = sorted(path.name for path in PACKAGE_DIR.iterdir() if path.is_symlink())
FOLDERS = [*PACKAGES, "bench", "scripts", "src", "tests", "conftest.py", "manage.py"]


def test_the_packages_are_those_of_the_top() -> None:
    assert len(PACKAGES) == 10
    assert all((ROOT / name / "__init__.py").is_file() for name in PACKAGES)


@pytest.mark.parametrize("script", [False, True])
def test_the_short_name_is_refused_in_the_repositorys_folder(script: bool) -> None:
    """Python puts the folder in which it is started on the path first."""
    code = (
        "import importlib\n"
        f"for name in {PACKAGES}:\n"
        "    try:\n"
        "        importlib.import_module(name)\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
        "    else:\n"
        "        print(name, 'was imported')\n"
    )
    words = ["manage.py", "shell", "--no-imports", "-c", code] if script else ["-c", code]
    done = forks.run(words, cwd=ROOT, env=os.environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"this package is `tailrace.{name}`: import it by that name" for name in PACKAGES
    ]


@pytest.mark.parametrize("name", PACKAGES)
def test_the_linter_flags_the_short_name(name: str) -> None:
    code = f"from {name}.handler import Handler\nimport {name}.models\nimport {name}\n"
    arguments = ["--select", "TID251", "--output-format", "concise", "--stdin-filename"]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", *arguments, "events/new.py", "-"],
        cwd=ROOT, input=code, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert done.stdout.count(f"TID251 `{name}`") == 3, done.stdout
    assert f"import tailrace.{name}" in done.stdout


SHORT_NAME = re.compile(rf"\b(?:import|from)\b.*(?<![.\w])(?:{'|'.join(PACKAGES)})\b")
RELATIVE = re.compile(r"\bfrom\s*\.")
"""What each file has that imports so, and few others: those are parsed, which takes longer."""


def _with_whole_lines(file: Path) -> str:
    return file.read_text().replace("\\\n", " ")


def imported(source: str) -> set[str]:
    """Return the modules that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module or "")
    return names


def test_no_file_imports_by_the_short_name() -> None:
    """Also what the linter does not look at: an import with a `noqa`."""
    files = [file for folder in FOLDERS for file in _python_files(ROOT / folder)]
    assert len(files) > 1000
    wrong = {
        str(file.relative_to(ROOT)): sorted(short)
        for file in files
        if SHORT_NAME.search(text := _with_whole_lines(file))
        and (short := {n for n in imported(text) if n.split(".")[0] in PACKAGES})
    }
    assert wrong == {}


def test_what_is_not_parsed_has_no_short_name() -> None:
    for line in ("import jobs", "import os, jobs.models", "from jobs import x", "x; import jobs"):
        assert SHORT_NAME.search(line), line
        assert {name.split(".")[0] for name in imported(line)} & {*PACKAGES}, line
    assert not SHORT_NAME.search("from tailrace.jobs import handler")


def test_no_relative_import_leads_around_the_name() -> None:
    relative = [
        str(file.relative_to(ROOT))
        for folder in PACKAGES
        for file in _python_files(ROOT / folder)
        if RELATIVE.search(text := _with_whole_lines(file))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relative == []


OTHER_PROJECT = ROOT / "tests/host/project"


def _python_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    # The project of somebody else has apps with the names of ours.
    return sorted(each for each in path.rglob("*.py") if OTHER_PROJECT not in each.parents)


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter in a checkout, on its own code."""
    code = "from importlinter.cli import lint_imports_command as run; run(['--no-cache'])"
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True
    )


def test_the_contracts_look_at_all_modules() -> None:
    """A contract about modules that are not found would be kept whatever they import."""
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    assert configured["root_package"] == "tailrace"
    layers = next(c for c in configured["contracts"] if c["type"] == "layers")["layers"]
    assert sorted(layers) == [f"tailrace.{name}" for name in PACKAGES]
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout
    modules = [file for name in PACKAGES for file in _python_files(ROOT / name)]
    found = re.search(r"Analyzed (\d+) files, (\d+) dependencies", done.stdout)
    assert found, done.stdout
    own = list((ROOT / "src" / "tailrace").glob("*.py"))
    assert int(found[1]) == len(modules) + len(own)
    assert int(found[2]) > len(modules)
    assert f"Contracts: {len(configured['contracts'])} kept, 0 broken" in done.stdout


WRONG = {
    "events/wrong.py": ("tailrace.jobs.models", "Imports point downwards only"),
    "domains/photos/wrong.py": ("tailrace.domains.builds.models", "Domains never import"),
    "web/wrong.py": ("tailrace.jobs.engine.waking.wake", "The inside of jobs is its own"),
    "domains/builds/wrong.py": ("tailrace.samples.processes", "Imports point downwards only"),
    "config/wrong.py": ("tailrace.samples.builds.seed", "Only the development server imports"),
}


def test_a_wrong_import_breaks_a_contract(tmp_path: Path) -> None:
    copy_project(tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for file, (imports, _broken) in WRONG.items():
        (tmp_path / file).write_text(f"import {imports}\n")
    done = lint_imports(tmp_path)
    assert done.returncode == 1, done.stdout
    # Below its name, each broken contract has the imports that break it.
    contracts = re.split(r"\n(.+)\n-+\n", done.stdout)
    named = dict(zip(contracts[1::2], contracts[2::2], strict=True))
    for file, (imports, broken) in WRONG.items():
        assert re.search(rf"{broken}.* BROKEN", done.stdout), broken
        module = f"tailrace.{file.removesuffix('.py').replace('/', '.')}"
        lines = next(text for name, text in named.items() if name.startswith(broken))
        assert f"{module} -> {imports}" in lines, done.stdout
