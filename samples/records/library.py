"""The sample repository of `make run`: works in twelve languages, some of which change later."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from tailrace.net.sample_server import Request
from tailrace.samples.records.repository import Repository

FILE = Path(__file__).with_name("library.yaml")
FIRST_DAY = datetime(2026, 1, 1, 12, tzinfo=UTC)
WITHDRAWN = ("oai:sample:006", "oai:sample:027", "oai:sample:047")
"""Records that are deleted when the second harvest begins."""
CORRECTED = "oai:sample:039"


def sample_library() -> Repository:
    """Return the repository. Some of its records change when the second harvest begins."""
    library = Repository(name="A sample library", page_size=20, token_lifetime=timedelta(hours=1))
    works: list[list[Any]] = yaml.safe_load(FILE.read_text())
    for number, (language, title, creators, keywords, description) in enumerate(works, 1):
        library.add(
            f"oai:sample:{number:03}",
            changed_at=FIRST_DAY + timedelta(days=number),
            sets=[f"works:{language}"],
            title=title,
            creator=creators,
            language=language,
            subject=keywords,
            description=description,
        )
    harvests = 0

    def change_later(request: Request) -> None:
        nonlocal harvests
        verb = parse_qs(urlsplit(request.path).query).get("verb")
        harvests += verb == ["Identify"]
        if harvests == 2 and verb == ["Identify"]:
            _change(library)

    library.before = change_later
    return library


def _change(library: Repository) -> None:
    for identifier in WITHDRAWN:
        library.delete(identifier)
    library.add(
        CORRECTED,
        sets=["works:sl"],
        title="Opazovanja snega na Voglu (popravljeno)",
        creator="Vzorec, Ana",
        language="sl",
        subject=["sneg", "gore", "meritve"],
        description="Vsakodnevne meritve višine snega na Voglu, s popravki za mesec februar.",
    )
