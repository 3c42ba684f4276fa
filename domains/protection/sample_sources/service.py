"""All sample sources at one address, distinguished by the paths of their protocols."""

from urllib.parse import urlsplit

from tailrace.domains.protection.sample_sources.brokers import sample_sites
from tailrace.domains.protection.sample_sources.deeds import sample_records
from tailrace.domains.protection.sample_sources.leaks import sample_service
from tailrace.net.sample_server import Request, Response

SITES = ("opt-out", "thanks", "confirm", "search", "people")


class SampleSources:
    """Leaks, public records of properties, and data brokers."""

    def __init__(self) -> None:
        self.leaks = sample_service()
        self.records = sample_records()
        self.sites = sample_sites()

    def respond(self, request: Request) -> Response:
        first = urlsplit(request.path).path[1:].partition("/")[0]
        if first == "resource":
            return self.records.respond(request)
        return self.sites(request) if first in SITES else self.leaks.respond(request)
