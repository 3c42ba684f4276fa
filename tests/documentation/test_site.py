"""The site of the documentation is built without a warning, and asks no other host for anything."""

import re
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from scripts import build_docs
from tests.kit import PATIENCE, ROOT

NEEDED = ("sphinx", "furo", "myst_parser", "sphinx_copybutton")
MISSING = [name for name in NEEDED if find_spec(name) is None]

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (make setup)"),
]
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
"""Elements whose address the browser loads by itself."""
FROM_ELSEWHERE = re.compile(r"""(?:url\(|@import\s+)\s*["']?(?:https?:)?//""")


class Page(HTMLParser):
    """What a page loads, where its links lead, and what can be linked to."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values["id"]} if "id" in values else set()
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if values.get(LOADED.get(tag, "")):
            self.loads.append(values[LOADED[tag]])


@cache
def page(file: Path) -> Page:
    return Page(file)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "build_docs.py", "--to", folder],
        capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return Path(done.stdout.strip()).parent


def test_the_site_loads_nothing_from_another_host(site: Path) -> None:
    outside = [
        f"{file.relative_to(site)}: {address}"
        for file in site.rglob("*.html")
        for address in page(file).loads
        if re.match(r"(?:https?:)?//", address)
    ]
    outside += [
        str(file.relative_to(site))
        for file in (*site.rglob("*.css"), *site.rglob("*.html"))
        if FROM_ELSEWHERE.search(file.read_text())
    ]
    assert outside == []


def test_each_link_of_the_site_leads_somewhere(site: Path) -> None:
    broken = []
    for file in site.rglob("*.html"):
        for link in page(file).links:
            address, anchor = urldefrag(link)
            if re.match(r"\w+:", address):
                continue
            target = (file.parent / unquote(address)).resolve() if address else file
            known = target.is_file() and target.suffix == ".html" and page(target).ids | {""}
            if not (unquote(anchor) in known if known else target.is_file()):
                broken.append(f"{file.relative_to(site)}: {link}")
    assert broken == []


def test_it_can_be_searched_without_a_server_and_its_snippets_copied(site: Path) -> None:
    assert "Search.setIndex(" in (site / "searchindex.js").read_text()
    html = (site / "how-to" / "flows.html").read_text()
    assert "copybutton.js" in html
    assert "theme-toggle" in html


def test_the_versions_that_were_built_are_listed(site: Path, tmp_path: Path) -> None:
    for name in ("0.9.2", "0.10.0", site.name, "draft"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").touch()
    build_docs.write_list(tmp_path)
    assert build_docs.versions(tmp_path) == [site.name, "0.10.0", "0.9.2"]
    assert '<a href="0.9.2/index.html">0.9.2</a>' in (tmp_path / "index.html").read_text()
    assert 'src="./../versions.js"' in (site / "index.html").read_text()
