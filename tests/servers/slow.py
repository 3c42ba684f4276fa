"""A web server that answers late: after the milliseconds that a request's path says, `/200`, or
when the test says so, `/held`.
"""

import asyncio
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class SlowServer:
    """Counts its requests by path; `most` is how many were open at once, by path and in all."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.open: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.loop: asyncio.AbstractEventLoop | None = None
        self._released: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    def release(self, path: str = "/held", after: float = 0.0) -> None:
        """Answer the requests of this path, those that come later, too, after so many seconds."""
        assert self.loop is not None
        release = self._released[path].set
        self.loop.call_soon_threadsafe(self.loop.call_later, after, release)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split()[1].decode()
            self.requests[path] += 1
            for name in (path, ""):
                self.open[name] += 1
                self.most[name] = max(self.most[name], self.open[name])
            try:
                if path.startswith("/held"):
                    await self._released[path].wait()
                else:
                    await asyncio.sleep(int(path.split("/")[1]) / 1000)
            finally:
                for name in (path, ""):
                    self.open[name] -= 1
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            await writer.drain()
            self.answered[path] += 1
        writer.close()


@contextmanager
def serving_slowly() -> Iterator[SlowServer]:
    """Serve until the block is left."""
    server = SlowServer()
    started = threading.Event()
    over: list[Callable[[], object]] = []

    async def serve() -> None:
        loop, end = asyncio.get_running_loop(), asyncio.Event()
        server.loop = loop
        listening = await asyncio.start_server(server.answer, "127.0.0.1", 0, backlog=1000)
        server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        over.append(lambda: loop.call_soon_threadsafe(end.set))
        started.set()
        await end.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    assert started.wait(30)
    try:
        yield server
    finally:
        over[0]()
        thread.join(30)


async def get(url: str) -> bytes:
    """Send a GET request; return the whole answer."""
    address, _, path = url.removeprefix("http://").partition("/")
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(f"GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        await writer.drain()
        return await reader.read()
    finally:
        writer.close()
