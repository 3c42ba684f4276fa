"""A request on its way in: collected by the event loop of a web process, then read by gunicorn."""

from collections.abc import Collection
from tempfile import SpooledTemporaryFile

from gunicorn.http.unreader import Unreader

MAX_HEAD = 64 * 1024
IN_MEMORY = 64 * 1024
"""Bytes of a request that are kept in memory; the rest is in a temporary file."""
SLOWEST = 16 * 1024
"""Bytes per second that a client sends of a body, at least."""
SLOWEST_LARGE = 128 * 1024
"""The same of a large body: it takes one of few places."""
READ = 64 * 1024
"""Bytes that the parser gets at once."""
END_OF_HEAD = b"\r\n\r\n"


class HeadTooLarge(Exception):
    """The head does not end within MAX_HEAD bytes."""


class Arrival:
    """What has arrived of one request. `until`: when the rest must be here, by the clock that the
    caller uses; `max_body`: the longest body to wait for; `max_large`: that of the paths
    `large_at`, where a body above `max_body` is a large one."""

    def __init__(
        self, until: float, max_body: int, max_large: int = 0, large_at: Collection[bytes] = ()
    ) -> None:
        self.until = until
        self.max_body, self.max_large = max_body, max_large
        self.large_at = large_at
        self.is_large = False
        self.received = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - read by gunicorn
        self.head = bytearray()
        self.has_head = False
        self.path = b""
        self.method = b""
        self.expects_continue = False
        self.length = 0
        """Bytes of the body to wait for: none of a body that is too long or has no length, since
        the application refuses such a request by its head."""
        self.missing = 0
        self.cut = False
        """Whether a body follows that nobody waits for."""
        self.excess = b""
        """The begin of the next request."""

    @property
    def complete(self) -> bool:
        return self.has_head and not self.missing

    def add(self, data: bytes) -> None:
        """Take the next bytes of the connection. Raises HeadTooLarge, or OSError of the file."""
        if not self.has_head:
            searched = max(0, len(self.head) - len(END_OF_HEAD) + 1)
            self.head += data
            end = self.head.find(END_OF_HEAD, searched)
            if end < 0:
                if len(self.head) > MAX_HEAD:
                    raise HeadTooLarge
                return
            end += len(END_OF_HEAD)
            data = bytes(self.head[end:])
            del self.head[end:]
            self._read_head()
            self.received.write(self.head)
        body, self.excess = data[: self.missing], data[self.missing :]
        self.missing -= len(body)
        self.received.write(body)

    def _read_head(self) -> None:
        """Find out how long the body is. A head that is not valid gets no body: gunicorn refuses
        it."""
        self.has_head = True
        request_line, *lines = bytes(self.head).split(b"\r\n")
        self.method, _, target = request_line.partition(b" ")
        self.path = target.partition(b" ")[0].partition(b"?")[0]
        fields: dict[bytes, set[bytes]] = {}
        for name, _, value in (line.partition(b":") for line in lines):
            fields.setdefault(name.lower(), set()).add(value.strip(b" \t").lower())
        lengths = fields.get(b"content-length", {b"0"})
        length = lengths.pop()
        known = not lengths and length.isdigit() and b"transfer-encoding" not in fields
        longest = self.max_large if self.path in self.large_at else self.max_body
        self.cut = not known or int(length) > longest
        self.length = self.missing = 0 if self.cut else int(length)
        self.is_large = self.length > self.max_body
        self.until += self.length / (SLOWEST_LARGE if self.is_large else SLOWEST)
        self.expects_continue = fields.get(b"expect") == {b"100-continue"}


class ArrivedRequest(Unreader):
    """Lets gunicorn's parser read a request that has arrived, and nothing of the connection."""

    def __init__(self, arrival: Arrival) -> None:
        super().__init__()
        self.arrival = arrival
        self.starved = arrival.cut
        """Whether the parser wanted more than there is: then nobody knows where the next request
        begins."""
        arrival.received.seek(0)

    def chunk(self, size_hint: int | None = None) -> bytes:
        """Return the next bytes; none at the end."""
        # The parser asks for the rest of the body, and copies what it got with each of its reads.
        data = self.arrival.received.read(READ)
        self.starved = self.starved or not data
        return data
