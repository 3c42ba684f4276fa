"""The links, names, snippets and generated parts of the pages are correct."""

import ast
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from scripts import make_pictures
from tailrace.jobs.handler import Backoff, Handler
from tests.kit import PATIENCE, ROOT

DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [*(ROOT / name for name in ("README.md", "SECURITY.md", "CHANGELOG.md")), *DOCS]
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
SNIPPET = re.compile(r"^( *)```python\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
CODE = ("config", "domains", "environment", "events", "jobs", "net", "db", "web", "samples",
        "subscriptions", "scripts", "tests", "bench", "pyproject.toml", "Makefile")  # fmt: skip


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings, as they are made from their texts."""
    text = FENCED.sub("", page.read_text())
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def snippets() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        text = page.read_text()
        for block in SNIPPET.finditer(text):
            line = text.count("\n", 0, block.start()) + 1
            yield f"{name_of(page)}:{line}", textwrap.dedent(block[2])


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_each_link_leads_somewhere(page: Path) -> None:
    broken = []
    text = re.sub(r"<!--.*?-->", "", FENCED.sub("", page.read_text()), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        address, _, anchor = link.partition("#")
        if "://" in address:
            continue
        target = (page.parent / address).resolve() if address else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_each_page_that_the_code_names_exists() -> None:
    named = subprocess.run(
        ["grep", "-rhoE", "--exclude-dir=__pycache__", r"\bdocs/[a-z0-9/_-]+\.md", *CODE],
        cwd=ROOT, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    assert len(named) > 20
    missing = {name for name in named if not (ROOT / name).is_file()}
    assert missing == {"docs/guide.md"}, "in the texts that test_checks.py makes up"


@pytest.mark.parametrize("page", DOCS, ids=name_of)
def test_each_page_begins_with_what_it_is_for(page: Path) -> None:
    title, blank, first = page.read_text().splitlines()[:3]
    assert title.startswith("# ")
    assert not blank
    assert re.match(r"[A-Z`]", first), first


def test_the_snippets_are_python_and_import_what_exists() -> None:
    wrong = []
    for place, code in snippets():
        try:
            tree = ast.parse(code)
        except SyntaxError as error:
            wrong.append(f"{place}: {error}")
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tailrace."):
                if node.module.startswith("tailrace.domains.shop"):
                    continue  # the app that the page makes
                module = import_module(node.module)
                wrong += [
                    f"{place}: {node.module} has no {alias.name}"
                    for alias in node.names
                    if not hasattr(module, alias.name)
                ]
    assert wrong == []


def test_the_attributes_of_handlers_are_listed_with_their_defaults() -> None:
    page = (ROOT / "docs/reference/handlers.md").read_text()
    table = page.split("## Attributes")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", table, re.MULTILINE))
    of_celery_tasks = {"worker_queue", "one_job_per_drain"}
    assert set(rows) == {*Handler.__annotations__} - {"name"} - of_celery_tasks
    for name, default in rows.items():
        value = getattr(Handler, name)
        assert default.split(":")[0].strip("`") == (
            f"Backoff{value.seconds}"
            if isinstance(value, Backoff)
            else repr(value).replace("'", '"')
        ), name


@pytest.mark.once
def test_what_is_made_from_the_code_is_current() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "write_reference.py", "--check"],
        capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_pictures_are_of_the_pages_of_today() -> None:
    taken = make_pictures.MARK.read_text().strip()
    assert taken == make_pictures.fingerprint(), "run `make pictures`: the overview has changed"
