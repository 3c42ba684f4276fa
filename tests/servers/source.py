"""A source server with the captured responses of a real one."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.servers.web import ReceivedRequest, Response, Server, serving

CAPTURES = Path(__file__).resolve().parent.parent / "data" / "obs"
PAYLOAD_KEY = "1795220447.365c5224f824046ebbb329f6967f4f6a"
MISSING = Response(404, (CAPTURES / "source" / "missing-package.body").read_bytes())


class Source:
    """`pages` maps paths with their queries to answers; what is not there is a 404."""

    def __init__(self) -> None:
        self.pages: dict[str, Response] = {
            "/source/home:alice/_meta": captured("source/project-meta"),
            "/source/home:alice/hello/_meta": captured("source/package-meta"),
            "/source/home:alice/hello?view=info": captured("source/package-info"),
            f"/notificationpayload/{PAYLOAD_KEY}": captured("30-notificationpayload"),
        }
        self.read_only = False
        """Whether clients lack the right to delete."""
        self.server: Server | None = None

    @property
    def url(self) -> str:
        assert self.server is not None
        return self.server.url

    @property
    def requests(self) -> list[str]:
        """The requests, such as `GET /source/home:alice/_meta`."""
        assert self.server is not None
        return [f"{request.method} {unquote(request.path)}" for request in self.server.requests]

    def answer(self, request: ReceivedRequest) -> Response:
        path = unquote(request.path)
        if request.method == "DELETE" and self.read_only:
            return Response(500, b"<status><summary>no permission</summary></status>")
        if request.method == "DELETE":
            self.pages.pop(urlsplit(path).path, None)
            return Response(200, b'<status code="ok" />\n')
        return self.pages.get(path, MISSING)

    def package(
        self,
        name: str,
        md5: str,
        links: tuple[str, ...] = (),
        devel: str = "",
        people: str = "",
        error: str = "",
    ) -> None:
        """Have a package in home:alice, made of the sources of `links`."""
        linked = "".join(f'<linked project="home:alice" package="{link}" />' for link in links)
        error = f"<error>{error}</error>" if error else ""
        info = (
            f'<sourceinfo package="{name}" rev="1" vrev="1" srcmd5="{md5}" verifymd5="{md5}">'
            f"{linked}{error}</sourceinfo>"
        )
        meta = f'<package name="{name}" project="home:alice"><title/>{devel}{people}</package>'
        self.pages[f"/source/home:alice/{name}?view=info"] = Response(200, info.encode())
        self.pages[f"/source/home:alice/{name}/_meta"] = Response(200, meta.encode())

    def payload(self, key: str, binaries: list[dict[str, object]]) -> None:
        """Keep a packtrack payload under the key."""
        self.pages[f"/notificationpayload/{key}"] = Response(200, json.dumps(binaries).encode())


def captured(name: str) -> Response:
    return Response(200, (CAPTURES / f"{name}.body").read_bytes())


@contextmanager
def source() -> Iterator[Source]:
    """Serve until the block is left."""
    source = Source()
    with serving(source.answer) as server:
        source.server = server
        yield source
