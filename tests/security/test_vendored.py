"""What others have written is what was reviewed: files in the repository, and packages."""

import hashlib
import re
import tomllib
from typing import Any

import pytest

from scripts import pin_requirements
from tests.kit import ROOT

VENDORED: dict[str, Any] = tomllib.loads((ROOT / "vendored.toml").read_text())
FILES = {
    file: digest for project in VENDORED.values() for file, digest in project["sha256"].items()
}
TEXTS = {project["licence_text"] for project in VENDORED.values()}
OF_OTHERS = re.compile(
    rb"@preserve|@licen[sc]e|copyright|\(c\) ?\d{4}|sourceMappingURL", re.IGNORECASE
)
LONGEST_LINE = 2000
"""Bytes; what is longer was made by a program, such as a minified script."""


@pytest.mark.parametrize(("file", "digest"), FILES.items())
def test_a_vendored_file_is_unchanged(file: str, digest: str) -> None:
    assert hashlib.sha256((ROOT / file).read_bytes()).hexdigest() == digest


@pytest.mark.parametrize("name", VENDORED)
def test_a_vendored_project_names_version_and_licence(name: str) -> None:
    project = VENDORED[name]
    text = (ROOT / project["licence_text"]).read_text()
    assert project["version"] in text.splitlines()[0]
    assert project["licence"]
    assert project["source"].startswith(("npm:", "pypi:", "github:"))


def test_no_other_file_that_browsers_get_is_of_another_project() -> None:
    ours = "jobs/platform/pages/static/tailrace/jobs"
    folders = {file.rpartition("/")[0] for file in FILES} - {ours}
    unknown = []
    for path in ROOT.glob("[a-z]*/**/static/**/*"):
        name = path.relative_to(ROOT).as_posix()
        if not path.is_file() or name in FILES or name in TEXTS or name.startswith("var/"):
            continue
        content = path.read_bytes()
        made = max(map(len, content.splitlines()), default=0) > LONGEST_LINE
        in_their_folder = any(name.startswith(f"{folder}/") for folder in folders)
        if made or in_their_folder or OF_OTHERS.search(content):
            unknown.append(name)
    assert unknown == []


PINNED = re.compile(r"^([a-z0-9._-]+)==\S+((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)


def pinned(name: str) -> dict[str, str]:
    """The packages of a requirements file, each with its markers and hashes."""
    return dict(PINNED.findall((ROOT / name).read_text()))


@pytest.mark.parametrize(
    "name",
    [
        "requirements.txt",
        "requirements/dev.txt",
        "requirements/optional.txt",
    ],
)
def test_each_package_is_pinned_with_the_hashes_of_its_files(name: str) -> None:
    packages = pinned(name)
    assert packages
    assert [package for package, rest in packages.items() if "--hash=sha256:" not in rest] == []


def test_what_runs_in_production_has_no_test_tools() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    tools = {line.split(";")[0].lower() for line in project["optional-dependencies"]["dev"]}
    assert "pytest" in tools
    assert tools & pinned("requirements.txt").keys() == set()


@pytest.mark.parametrize("name", ["requirements/optional.txt", "requirements/dev.txt"])
def test_all_files_agree_on_versions(name: str) -> None:
    version = re.compile(r"^([a-z0-9._-]+)==(\S+)", re.MULTILINE)
    runs = dict(version.findall((ROOT / "requirements.txt").read_text()))
    more = dict(version.findall((ROOT / name).read_text()))
    assert {package: more.get(package) for package in runs} == runs


def test_what_is_declared_is_pinned() -> None:
    """`make requirements` was run after the last change of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for file, extras in pin_requirements.FILES.items():
        lines = pin_requirements.lines(project, extras)
        names = {re.split(r"[^A-Za-z0-9._-]", line)[0].lower() for line in lines}
        assert names - pinned(file).keys() == set(), file
