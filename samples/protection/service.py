"""All sample sources at one address, distinguished by the paths of their protocols."""

from urllib.parse import urlsplit

from tailrace.net.sample_server import Request, Response
from tailrace.samples.protection.broker import DataBroker
from tailrace.samples.protection.deeds import sample_records
from tailrace.samples.protection.leaks import sample_service

LISTED_PERSON = "Admin Sample"
"""The person whom a broker lists until a removal is confirmed."""


class SampleSources:
    """Leaks, public records of properties, and data brokers."""

    def __init__(self) -> None:
        self.leaks = sample_service()
        self.records = sample_records()
        self.people = DataBroker(people={LISTED_PERSON}, asks_to_confirm=True)
        self.search = DataBroker()

    def respond(self, request: Request) -> Response:
        match urlsplit(request.path).path[1:].partition("/")[0]:
            case "resource":
                return self.records.respond(request)
            case "search":
                return self.search.respond(request)
            case "opt-out" | "thanks" | "confirm" | "people":
                return self.people.respond(request)
        return self.leaks.respond(request)
