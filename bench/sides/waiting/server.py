"""An HTTP server that answers each request after 100 ms: prints its port, counts what it is asked.

`GET /call/ID` is answered 204; `GET /stats` at once, with the figures so far as JSON.
"""

import asyncio
import json
from time import monotonic

SECONDS = 0.1


class Counts:
    """Of all requests: when each was answered, whose it was, and how many waited at once."""

    def __init__(self) -> None:
        self.began = 0.0
        self.answered: list[float] = []
        self.ids: set[bytes] = set()
        self.waiting = 0
        self.most = 0

    def stats(self) -> dict[str, float]:
        """The figures; `rate` is that of the middle 80 % of the answers.

        `whole` is from the first request to the last answer: both workers' starts are in it.
        """
        times = self.answered
        tenth = len(times) // 10
        return {
            "answered": len(times),
            "distinct": len(self.ids),
            "most": self.most,
            "rate": _rate(times[tenth : len(times) - tenth]),
            "whole": len(times) / (times[-1] - self.began) if times else 0.0,
        }


def _rate(times: list[float]) -> float:
    return (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 else 0.0


counts = Counts()


class Connection(asyncio.Protocol):
    """One that stays; the next request comes after the answer."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        if not self.received.endswith(b"\r\n\r\n"):
            return
        path = self.received.split(b" ", 2)[1]
        self.received = b""
        if path == b"/stats":
            body = json.dumps(counts.stats()).encode()
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
            self.transport.write(body)
            return
        counts.began = counts.began or monotonic()
        counts.waiting += 1
        counts.most = max(counts.most, counts.waiting)
        asyncio.get_running_loop().call_later(SECONDS, self.answer, path)

    def answer(self, path: bytes) -> None:
        """Count it, too if the client has gone: it was asked for."""
        counts.waiting -= 1
        counts.answered.append(monotonic())
        counts.ids.add(path)
        self.transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")


async def serve() -> None:
    """Until it is killed."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
