"""A backend on this machine: speaks the notification log's protocol, faults included.

It is the sample backend with a queue of faults: each read of the log takes the next one.
"""

import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from tailrace.samples.builds.server import (
    Connection,
    HttpError,
    Request,
    Response,
    SampleBackend,
)

Fault = Callable[[Connection, Response], None]


class TestBackend(SampleBackend):
    """`faults`: what goes wrong with the next reads of the log, one each.

    `broken`: patterns of paths that are answered with status 500; `cut_paths`: of paths whose
    answers are cut in the middle.
    """

    __test__ = False

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.faults: deque[Fault] = deque()
        self.requests: list[Request] = []
        self.broken: set[str] = set()
        self.cut_paths: set[str] = set()

    @property
    def reads(self) -> list[dict[str, str]]:
        """The parameters of the reads of the log so far."""
        return [request.params for request in self.requests if request.path == "/lastnotifications"]

    def add(self, count: int, project: str = "bulk") -> None:
        """Append as many publish states as asked for, numbered like the log."""
        for _ in range(count):
            state = f"s{self.log.end}"
            self.notify("REPO_PUBLISH_STATE", {"project": project, "repo": "r", "state": state})

    def answer(self, request: Request) -> Response:
        self.requests.append(request)
        if any(re.search(pattern, request.path) for pattern in self.broken):
            raise HttpError(500, "broken")
        return super().answer(request)

    def write(self, connection: Connection, response: Response) -> None:
        if self.faults and connection.path.startswith("/lastnotifications"):
            self.faults.popleft()(connection, response)
        elif any(re.search(pattern, connection.path) for pattern in self.cut_paths):
            cut(connection, response)
        else:
            connection.write(response)


@contextmanager
def running(port: int = 0) -> Iterator[TestBackend]:
    """A backend that serves until the block ends."""
    backend = TestBackend(port)
    thread = threading.Thread(target=backend.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield backend
    finally:
        backend.shutdown()
        backend.server_close()
        thread.join(5)


def says(status: int, body: bytes = b"", content_type: str = "text/xml") -> Fault:
    """Another answer than the right one."""
    return lambda connection, _: connection.write(Response(body, status, content_type))


def html(connection: Connection, _: Response) -> None:
    """The page of a proxy whose server is down."""
    page = b"<!DOCTYPE html>\n<html><body><h1>It works!</h1></body></html>"
    connection.write(Response(page, content_type="text/html"))


def cut(connection: Connection, response: Response) -> None:
    """Half of the body, then the end of the connection."""
    length = {"Content-Length": str(len(response.body))}
    half = response.body[: len(response.body) // 2]
    connection.write(replace(response, body=half, headers=length))


def cut_unseen(connection: Connection, response: Response) -> None:
    """Half of the body, as if that were all."""
    connection.write(replace(response, body=response.body[: len(response.body) // 2]))


def gone(connection: Connection, _: Response) -> None:
    """The connection ends without a word."""
    connection.close_connection = True


def silent(connection: Connection, _: Response) -> None:
    """Nothing comes until the server stops."""
    connection.server.stopping.wait(30)


def stuck(connection: Connection, response: Response) -> None:
    """The beginning comes, and then nothing."""
    length = {"Content-Length": str(len(response.body) + 10)}
    connection.write(replace(response, headers=length))
    connection.wfile.flush()
    connection.server.stopping.wait(30)


def dripping(connection: Connection, response: Response) -> None:
    """A byte now and then, so that no single wait is long."""
    connection.write(Response(b"", headers={"Content-Length": "1000000"}))
    dripping_on(connection)


def dripping_on(connection: Connection) -> None:
    """Blanks, one at a time, as a part of an answer."""
    try:
        while not connection.server.stopping.wait(0.05):
            connection.wfile.write(b" ")
    except OSError:
        connection.close_connection = True


def endless(size: int) -> Fault:
    """A body of `size` bytes, if somebody reads it."""

    def fault(connection: Connection, response: Response) -> None:
        connection.write(Response(b'{"notification":[', headers={"Content-Length": str(size)}))
        block = b'{"type":"X","time":"1","data":{}},' * 2000
        try:
            for _ in range(size // len(block)):
                connection.wfile.write(block)
        except OSError:
            connection.close_connection = True

    return fault


def instead(change: Callable[[bytes], bytes]) -> Fault:
    """The right answer with its body changed."""
    return lambda connection, response: connection.write(
        replace(response, body=change(response.body))
    )
