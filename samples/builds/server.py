"""The HTTP server of the sample backend, with the parts of a source server's API that Tailrace
uses."""

import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from tailrace.samples.builds import responses
from tailrace.samples.builds.activity import (
    activity,
    binaries,
    project_of,
    rounds_of,
)
from tailrace.samples.builds.log import NotificationLog
from tailrace.samples.builds.projects import NoSuchSource, SourceMetadata

XML = "text/xml"
JSON = "application/json"
KNOWN_PARAMS = {"start", "view", "block", "noprune"}
PER_SECOND = 3
"""Notifications of the activity per second."""


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

    `port` 0 means any free port (see `url`). `journal` is the file in which the log is stored; if
    it is None, the log is only in memory.
    """

    daemon_threads = True
    request_queue_size = 50

    def __init__(self, port: int = 0, journal: Path | None = None) -> None:
        self.stopping = threading.Event()
        self.log = NotificationLog()
        # This fails if the port is in use. It comes before the journal is opened, because that
        # would change the journal of the process that uses the port.
        super().__init__(("127.0.0.1", port), Connection)
        self.log = NotificationLog(journal)
        self.payloads: dict[str, list[dict[str, object]]] = {}
        self.plugin_notifications: list[tuple[str, dict[str, object]]] = []
        """The last notifications of plugins: type and parameters."""
        self.build_logs: dict[str, bytes] = {}
        """Build logs by project/package. Other packages have a default log."""
        self.read_only = False
        """Whether clients have no write permission. Then the server answers 500."""
        self.metadata = SourceMetadata()
        for notification in self.log:
            self.metadata.update(notification.values)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def notify(self, type: str, values: dict[str, str]) -> int:
        """Append a notification to the log, like the programs of a build service."""
        self.metadata.update(values)
        return self.log.append(type, values)

    def run_activity(self) -> None:
        """Append PER_SECOND notifications per second, until the server is closed."""
        for type, values, round in activity(rounds_of(self.log.end - 1)):
            if self.stopping.wait(1 / PER_SECOND):
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
            case "POST", ["notify_plugins", type]:
                return self._notify_plugins(type, request)
            case "GET", ["notificationpayload", key]:
                if key not in self.payloads:
                    raise HttpError(404, "payload does not exist!")
                return Response(json.dumps(self.payloads[key]).encode(), content_type=JSON)
            case "DELETE", ["notificationpayload", key]:
                if self.read_only:
                    raise HttpError(500, "no permission")
                self.payloads.pop(key, None)
                return Response(responses.status(200, ""))
            case "GET", ["build", project, _repository, _arch, package, "_log"]:
                return self._build_log(f"{project}/{package}", request.params)
            case method, ["source", *names]:
                try:
                    return self._source(method, names, request)
                except NoSuchSource as error:
                    raise HttpError(404, str(error)) from None
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
        if view == "json" and not answer.handed_over:
            return Response(responses.as_json(answer), content_type=JSON)
        return Response(responses.as_xml(answer))

    def _notify(self, type: str, request: Request) -> Response:
        values = dict(request.params)
        if request.body:
            values["payload"] = self.store(json.loads(request.body))
        self.notify(type, values)
        return Response(responses.status(200, ""))

    def _notify_plugins(self, type: str, request: Request) -> Response:
        """Accept a frontend's notification of the plugins. It is not appended to the log."""
        try:
            parameters = json.loads(request.body)
        except ValueError:
            raise HttpError(400, "malformed JSON string") from None
        self.plugin_notifications = [*self.plugin_notifications[-99:], (type, parameters)]
        return Response(responses.status(200, ""))

    def _build_log(self, package: str, params: dict[str, str]) -> Response:
        """Return the size of a log (`view=entry`), or its bytes from `start` to `end`."""
        log = self.build_logs.get(package, responses.build_log(package))
        if params.get("view") == "entry":
            return Response(responses.log_size(len(log)))
        start, end = int(params.get("start", 0)), int(params.get("end", len(log)))
        return Response(log[start:end], content_type="application/octet-stream")

    def _source(self, method: str, names: list[str], request: Request) -> Response:
        """Answer a request below `/source`. Changes are appended to the log."""
        command = request.params.get("cmd") if method == "POST" else None
        match command or method, names:
            case "GET", []:
                answer = self.metadata.names()
            case "GET", [project]:
                answer = self.metadata.names(project)
            case "GET", [project, "_meta"]:
                answer = self.metadata.meta(project)
            case "GET", [project, package, "_meta"]:
                answer = self.metadata.meta(project, package)
            case "GET", [project, package]:
                answer = self.metadata.source_info(project, package)
            case "PUT", [*path, "_meta"] if 1 <= len(path) <= 2:
                answer = request.body.decode()
                is_new = self.metadata.write_meta(answer, *path)
                self._report("CREATE" if is_new else "UPDATE", path, request)
            case "DELETE", [*path] if 1 <= len(path) <= 2:
                self.metadata.delete(*path)
                self._report("DELETE", path, request)
                return Response(responses.status(200, ""))
            case "undelete", [*path] if 1 <= len(path) <= 2:
                self.metadata.undelete(*path)
                self._report("UNDELETE", path, request)
                return Response(responses.status(200, ""))
            case _:
                raise HttpError(404, "unknown request")
        return Response(answer.encode())

    def _report(self, change: str, path: list[str], request: Request) -> None:
        """Append the notification of a changed project or package, with the same keys as a real
        server. `path` is [project] or [project, package]."""
        kind = "PROJECT" if len(path) == 1 else "PACKAGE"
        values = dict(zip(("project", "package"), path, strict=False))
        values["sender"] = request.params.get("user", "unknown")
        if change in ("DELETE", "UNDELETE"):
            values |= {
                key: request.params[key]
                for key in ("comment", "requestid")
                if key in request.params
            }
        self.notify(f"SRCSRV_{change}_{kind}", values)


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
