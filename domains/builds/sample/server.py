"""The sample backend's HTTP side: the parts of the source server's interface that we use."""

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from domains.builds.sample import wire
from domains.builds.sample.log import NotificationLog
from domains.builds.sample.story import binaries, rounds_told, story
from domains.builds.sample.world import PLACES, World

XML = "text/xml"
JSON = "application/json"
KNOWN = {"start", "view", "block", "noprune"}


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    params: dict[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class Response:
    body: bytes = b""
    status: int = 200
    content_type: str = XML
    headers: dict[str, str] = field(default_factory=dict)


class Refused(Exception):
    """The request is answered with an error status."""

    def __init__(self, status: int, summary: str) -> None:
        super().__init__(summary)
        self.response = Response(wire.status(status, summary), status)


class Backend(ThreadingHTTPServer):
    """Serves a notification log, the payloads it points to, and the metadata of its packages.

    `port` 0 takes a free one (`url` tells which). `journal` is a file in which the log outlives a
    restart; None keeps it in memory.
    """

    daemon_threads = True
    request_queue_size = 50

    def __init__(
        self, port: int = 0, journal: Path | None = None, *, host: str = "127.0.0.1"
    ) -> None:
        self.stopping = threading.Event()
        self.log = NotificationLog()
        # A port that is taken ends here, before the journal of who has it is touched.
        super().__init__((host, port), Connection)
        self.host = host
        self.log = NotificationLog(journal)
        self.payloads: dict[str, list[dict[str, object]]] = {}
        self.world = World()
        for made in self.log:
            self.world.take_note(made.values)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.server_port}"

    def notify(self, type: str, values: dict[str, str]) -> int:
        """Append a notification, as the build service's own parts do."""
        self.world.take_note(values)
        return self.log.append(type, values)

    def live(self, rate: float) -> None:
        """Let the story happen, `rate` notifications per second, until the server is closed."""
        for type, values, round in story(rounds_told(self.log.end - 1)):
            if self.stopping.wait(1 / rate):
                return
            if type == "PACKTRACK":
                place = PLACES[round % (len(PLACES) - 1)]
                values = values | {"payload": self.keep(binaries(place, round))}
            self.notify(type, values)

    def keep(self, payload: list[dict[str, object]]) -> str:
        """Store a payload and return its key."""
        key = f"{int(time.time())}.{len(self.payloads):032x}{self.log.end:x}"
        self.payloads[key] = payload
        return key

    def server_close(self) -> None:
        self.stopping.set()
        super().server_close()
        self.log.close()

    # --- answers ---

    def answer(self, request: Request) -> Response:
        """Answer one request; raise Refused for an error status."""
        match request.method, [unquote(part) for part in request.path.strip("/").split("/")]:
            case "GET", [""]:
                return Response(b'<hello name="Sample Source Server" repoid="1" />\n')
            case "GET", ["lastnotifications"]:
                return self._notifications(request.params)
            case "POST", ["notify", type]:
                return self._notify(type, request)
            case "GET", ["notificationpayload", key]:
                if key not in self.payloads:
                    raise Refused(404, "payload does not exist!")
                return Response(json.dumps(self.payloads[key]).encode(), content_type=JSON)
            case "DELETE", ["notificationpayload", key]:
                self.payloads.pop(key, None)
                return Response(wire.status(200, ""))
            case "GET", ["source", *rest]:
                return Response(self._source(rest, request.params.get("view")).encode())
        raise Refused(404, "unknown request")

    def write(self, connection: "Connection", response: Response) -> None:
        """Send an answer to who asked."""
        connection.write(response)

    def _notifications(self, params: dict[str, str]) -> Response:
        for name in params:
            if name not in KNOWN:
                raise Refused(400, f"unknown parameter '{name}'")
        start, view = params.get("start", "0"), params.get("view", "")
        if not start.isdigit():
            raise Refused(400, f"not a number: '{start}'")
        if view not in ("", "json"):
            raise Refused(400, "unsupported view")
        answer = self.log.read(
            int(start), prune=params.get("noprune") != "1", block=params.get("block") == "1"
        )
        if view == "json":
            return Response(wire.as_json(answer), content_type=JSON)
        return Response(wire.as_xml(answer))

    def _notify(self, type: str, request: Request) -> Response:
        values = dict(request.params)
        if request.body:
            values["payload"] = self.keep(json.loads(request.body))
        self.notify(type, values)
        return Response(wire.status(200, ""))

    def _source(self, path: list[str], view: str | None) -> str:
        place = self.world.project(path[0]) if path else None
        if place is None:
            raise Refused(404, f"project '{path[0] if path else ''}' does not exist")
        match path[1:], view:
            case [], "info":
                return self.world.project_info(place)
            case [], _:
                return self.world.package_list(place)
            case ["_meta"], _:
                return self.world.project_meta(place)
        if path[1] not in place.packages:
            raise Refused(404, f"package '{path[1]}' does not exist")
        if path[2:] == ["_meta"]:
            return self.world.package_meta(place, path[1])
        return self.world.source_info(place, path[1])


class Connection(BaseHTTPRequestHandler):
    """One request: reads it, has the server answer it, writes the answer."""

    server: Backend
    timeout = 60

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_DELETE = do_GET

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            params = dict(parse_qsl(parts.query, keep_blank_values=True, errors="strict"))
            response = self.server.answer(Request(self.command, parts.path, params, body))
        except UnicodeDecodeError:
            response = Refused(400, "query string is not utf-8").response
        except Refused as refused:
            response = refused.response
        self.server.write(self, response)

    def write(self, response: Response) -> None:
        """Send the answer; who asked may be gone."""
        try:
            self.send_response(response.status)
            self.send_header("Content-Type", response.content_type)
            self.send_header("Cache-Control", "no-cache")
            self.send_header("Connection", "close")
            if "Content-Length" not in response.headers:
                self.send_header("Content-Length", str(len(response.body)))
            for name, value in response.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(response.body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, format: str, *arguments: object) -> None:
        """Stay silent: pollers ask every few seconds."""
