"""A server like Have I Been Pwned: answers after 50 ms, 100 accounts a second; prints its port.

More than that in any second are answered 429 and a retry-after. One account of ten has a breach.
`GET /stats` is answered at once, with the figures so far as JSON.
"""

import asyncio
import json
from collections import deque
from time import monotonic

SECONDS = 0.05
PER_SECOND = 100
BREACH = {
    "Name": "Adobe",
    "Title": "Adobe",
    "Domain": "adobe.example",
    "BreachDate": "2013-10-04",
    "AddedDate": "2013-12-04T00:00:00Z",
    "ModifiedDate": "2022-05-15T23:52:49Z",
    "PwnCount": 152445165,
    "Description": "In October 2013, <b>accounts</b> were lost. " * 10,
    "DataClasses": ["Email addresses", "Password hints", "Passwords", "Usernames"],
}
_BODY = json.dumps([BREACH]).encode()
_FOUND = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
    len(_BODY),
    _BODY,
)
_CLEAN = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
_BUSY = b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\nContent-Length: 0\r\n\r\n"
answered: list[float] = []
refused = 0
_last: deque[float] = deque()


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
            body = json.dumps({"answered": answered, "refused": refused}).encode()
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
            self.transport.write(body)
            return
        asyncio.get_running_loop().call_later(SECONDS, self.answer, path, _over_limit())

    def answer(self, path: bytes, is_over: bool) -> None:
        """Count it, too if the client has gone: it was asked for."""
        if is_over:
            self.transport.write(_BUSY)
            return
        answered.append(monotonic())
        has_breach = path.partition(b"?")[0].endswith(b"0")
        self.transport.write(_FOUND if has_breach else _CLEAN)


def _over_limit() -> bool:
    global refused
    now = monotonic()
    while _last and _last[0] <= now - 1:
        _last.popleft()
    if len(_last) >= PER_SECOND:
        refused += 1
        return True
    _last.append(now)
    return False


async def serve() -> None:
    """Until it is killed."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
