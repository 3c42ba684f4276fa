"""The data brokers that `make run` has: those of the sample file, at an address of this machine."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from tailrace.domains.protection.removals.brokers import SAMPLES
from tailrace.domains.protection.sample_sources.broker import DataBroker
from tailrace.net.sample_server import Request, Response

NAME = "Admin Sample"
"""Who is listed there, and asks to be removed."""
KEYS = ("sample-form", "sample-mail", "sample-letter")
HOSTS = ("people.example", "records.example", "lists.example")


def write_file(path: Path, url: str) -> None:
    """Write the file of these brokers, whose sites are all at this address."""
    text = SAMPLES.read_text()
    for host in HOSTS:
        text = text.replace(f"https://{host}", url)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def sample_sites() -> Callable[[Request], Response]:
    """Return what answers for all of them: one lists the person until they confirm a removal."""
    people = DataBroker(people={NAME}, asks_to_confirm=True)
    records = DataBroker()

    def respond(request: Request) -> Response:
        searched = urlsplit(request.path).path == "/search"
        return (records if searched else people).respond(request)

    return respond
