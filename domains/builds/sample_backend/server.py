"""The HTTP server of the sample backend: the parts of the source server's API that are used."""

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from domains.builds.sample_backend import responses
from domains.builds.sample_backend.activity import activity, binaries, project_of, rounds_of
from domains.builds.sample_backend.log import NotificationLog
from domains.builds.sample_backend.projects import SourceMetadata

XML = "text/xml"
JSON = "application/json"
KNOWN_PARAMS = {"start", "view", "block", "noprune"}


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


class HttpError(Exception):
    """The request is answered with an error status."""

    def __init__(self, status: int, summary: str) -> None:
        super().__init__(summary)
        self.response = Response(responses.status(status, summary), status)


class SampleBackend(ThreadingHTTPServer):
    """Serves a notification log, its payloads, and the metadata of its projects.

    `port` 0 means any free port (see `url`). `journal` is a file that keeps the log across
    restarts; None keeps it in memory.
    """

    daemon_threads = True
    request_queue_size = 50

    def __init__(
        self, port: int = 0, journal: Path | None = None, *, host: str = "127.0.0.1"
    ) -> None:
        self.stopping = threading.Event()
        self.log = NotificationLog()
        # If the port is in use this fails, before the journal of the other process is changed.
        super().__init__((host, port), Connection)
        self.host = host
        self.log = NotificationLog(journal)
        self.payloads: dict[str, list[dict[str, object]]] = {}
        self.metadata = SourceMetadata()
        for notification in self.log:
            self.metadata.update(notification.values)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.server_port}"

    def notify(self, type: str, values: dict[str, str]) -> int:
        """Append a notification, as the parts of a build service do."""
        self.metadata.update(values)
        return self.log.append(type, values)

    def run_activity(self, rate: float) -> None:
        """Append `rate` notifications per second until the server is closed."""
        for type, values, round in activity(rounds_of(self.log.end - 1)):
            if self.stopping.wait(1 / rate):
                return
            if type == "PACKTRACK":
                payload = self.store(binaries(project_of(round), round))
                values = values | {"payload": payload}
            self.notify(type, values)

    def store(self, payload: list[dict[str, object]]) -> str:
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
        """Answer one request; raise HttpError for an error status."""
        match request.method, [unquote(part) for part in request.path.strip("/").split("/")]:
            case "GET", [""]:
                return Response(b'<hello name="Sample Source Server" repoid="1" />\n')
            case "GET", ["lastnotifications"]:
                return self._notifications(request.params)
            case "POST", ["notify", type]:
                return self._notify(type, request)
            case "GET", ["notificationpayload", key]:
                if key not in self.payloads:
                    raise HttpError(404, "payload does not exist!")
                return Response(json.dumps(self.payloads[key]).encode(), content_type=JSON)
            case "DELETE", ["notificationpayload", key]:
                self.payloads.pop(key, None)
                return Response(responses.status(200, ""))
            case "GET", ["source", *rest]:
                return Response(self._source(rest).encode())
        raise HttpError(404, "unknown request")

    def write(self, connection: "Connection", response: Response) -> None:
        """Send an answer to the client."""
        connection.write(response)

    def _notifications(self, params: dict[str, str]) -> Response:
        for name in params:
            if name not in KNOWN_PARAMS:
                raise HttpError(400, f"unknown parameter '{name}'")
        start, view = params.get("start", "0"), params.get("view", "")
        if not start.isdigit():
            raise HttpError(400, f"not a number: '{start}'")
        if view not in ("", "json"):
            raise HttpError(400, "unsupported view")
        answer = self.log.read(
            int(start), prune=params.get("noprune") != "1", block=params.get("block") == "1"
        )
        if view == "json":
            return Response(responses.as_json(answer), content_type=JSON)
        return Response(responses.as_xml(answer))

    def _notify(self, type: str, request: Request) -> Response:
        values = dict(request.params)
        if request.body:
            values["payload"] = self.store(json.loads(request.body))
        self.notify(type, values)
        return Response(responses.status(200, ""))

    def _source(self, path: list[str]) -> str:
        project = self.metadata.project(path[0]) if path else None
        if project is None:
            raise HttpError(404, f"project '{path[0] if path else ''}' does not exist")
        match path[1:]:
            case ["_meta"]:
                return self.metadata.project_meta(project)
            case [package, *_] if package not in project.packages:
                raise HttpError(404, f"package '{package}' does not exist")
            case [package, "_meta"]:
                return self.metadata.package_meta(project, package)
            case [package, *_]:
                return self.metadata.source_info(project, package)
        raise HttpError(404, "unknown request")


class Connection(BaseHTTPRequestHandler):
    """Handles one request."""

    server: SampleBackend
    timeout = 60

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            params = dict(parse_qsl(parts.query, keep_blank_values=True, errors="strict"))
            response = self.server.answer(Request(self.command, parts.path, params, body))
        except UnicodeDecodeError:
            response = HttpError(400, "query string is not utf-8").response
        except HttpError as error:
            response = error.response
        self.server.write(self, response)

    do_POST = do_PUT = do_DELETE = do_GET

    def write(self, response: Response) -> None:
        """Send the answer, unless the client has disconnected."""
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
        """Log nothing: pollers send a request every few seconds."""
