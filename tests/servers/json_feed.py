"""A feed of records in JSON with a cursor, for tests."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.servers.web import ReceivedRequest, Response, serving


@dataclass
class FeedServer:
    """Its items in the order of their changes; a cursor is the number of the next item."""

    url: str = ""
    items: list[dict[str, Any]] = field(default_factory=list)
    page_size: int = 10
    oldest_cursor: int = 0
    """Cursors below it are answered with 410."""
    requests: list[str] = field(default_factory=list)
    """The cursor of each request."""
    before: Callable[[ReceivedRequest], Response | None] = lambda request: None
    """Called before each answer; what it returns is the answer."""

    def add(self, id: str, **metadata: Any) -> None:
        self.items.append({"id": id, "metadata": metadata})

    def delete(self, id: str) -> None:
        self.items.append({"id": id, "deleted": True})

    def respond(self, request: ReceivedRequest) -> Response:
        cursor = parse_qs(urlsplit(request.path).query).get("cursor", [""])[0]
        self.requests.append(cursor)
        if (fault := self.before(request)) is not None:
            return fault
        begin = int(cursor or 0)
        if cursor and begin < self.oldest_cursor:
            return Response(410, b"{}")
        items = self.items[begin : begin + self.page_size]
        page = {"items": items, "next": str(begin + len(items)), "total": len(self.items)}
        return Response(200, json.dumps(page).encode(), {"Content-Type": "application/json"})


@contextmanager
def feed_server() -> Iterator[FeedServer]:
    """Run the feed until the block ends."""
    feed = FeedServer()
    with serving(feed.respond) as server:
        feed.url = f"{server.url}/feed"
        yield feed
