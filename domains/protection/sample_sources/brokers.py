"""The data brokers of `make run`: the brokers of the sample file, at a local address."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from tailrace.domains.protection.removals.brokers import SAMPLES
from tailrace.domains.protection.sample_sources.broker import DataBroker
from tailrace.net.sample_server import Request, Response

NAME = "Admin Sample"
"""The person who is listed by the brokers and asks for removal."""
KEYS = ("sample-form", "sample-mail", "sample-letter")
HOSTS = ("people.example", "records.example", "lists.example")


def write_file(path: Path, url: str) -> None:
    """Write the file of these brokers, with all sites at this URL."""
    text = SAMPLES.read_text()
    for host in HOSTS:
        text = text.replace(f"https://{host}", url)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def sample_sites() -> Callable[[Request], Response]:
    """Return a function that responds for all brokers. One of them lists the person until a removal
    is confirmed."""
    people = DataBroker(people={NAME}, asks_to_confirm=True)
    records = DataBroker()

    def respond(request: Request) -> Response:
        is_search = urlsplit(request.path).path == "/search"
        return (records if is_search else people).respond(request)

    return respond
