"""An incoming request: the event loop of a web process collects it, then gunicorn parses it."""

from collections.abc import Collection
from tempfile import SpooledTemporaryFile

from gunicorn.http.unreader import Unreader

MAX_HEAD = 64 * 1024
IN_MEMORY = 64 * 1024
"""Bytes of a request up to which it is kept in memory; a longer one is kept in a temporary file."""
SLOWEST = 16 * 1024
"""Minimum rate at which a client must send a body, in bytes per second."""
SLOWEST_LARGE = 128 * 1024
"""The same for large bodies, of which only few may arrive at once."""
READ = 64 * 1024
"""Bytes that the parser reads at once."""
END_OF_HEAD = b"\r\n\r\n"


class HeadTooLarge(Exception):
    """The head does not end within MAX_HEAD bytes."""


class Arrival:
    """The part of a request that has arrived. `until` is the deadline for the rest, by the caller's
    clock. The longest body is `max_body`, or `max_large` for the paths `large_at`; one above
    `max_body` is large."""

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
        """Bytes of the body to receive; 0 if it is too long or its length is unknown, since the
        application refuses such a request by its head."""
        self.missing = 0
        """Bytes of the body that have not arrived yet."""
        self.cut = False
        """Whether the request has a body that is not received."""
        self.excess = b""
        """Bytes after the request: the beginning of the next one."""

    @property
    def complete(self) -> bool:
        return self.has_head and not self.missing

    def add(self, data: bytes) -> None:
        """Add bytes from the connection. Raises HeadTooLarge, or OSError of the temporary file."""
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
        """Read path and body length from the head. If the head is invalid, no body is received,
        since gunicorn refuses the request."""
        self.has_head = True
        request_line, *lines = bytes(self.head).split(b"\r\n")
        self.method, _, target = request_line.partition(b" ")
        self.path = target.partition(b" ")[0].partition(b"?")[0]
        fields: dict[bytes, set[bytes]] = {}
        for name, _, value in (line.partition(b":") for line in lines):
            fields.setdefault(name.lower(), set()).add(value.strip(b" \t").lower())
        lengths = fields.get(b"content-length", {b"0"})
        length = lengths.pop()
        is_known = not lengths and length.isdigit() and b"transfer-encoding" not in fields
        longest = self.max_large if self.path in self.large_at else self.max_body
        self.cut = not is_known or int(length) > longest
        self.length = self.missing = 0 if self.cut else int(length)
        self.is_large = self.length > self.max_body
        self.until += self.length / (SLOWEST_LARGE if self.is_large else SLOWEST)
        self.expects_continue = fields.get(b"expect") == {b"100-continue"}


class ArrivedRequest(Unreader):
    """Lets gunicorn's parser read the received request instead of the connection."""

    def __init__(self, arrival: Arrival) -> None:
        super().__init__()
        self.arrival = arrival
        self.starved = arrival.cut
        """Whether the parser asked for more bytes than were received. Then it is unknown where the
        next request begins, and the connection must be closed."""
        arrival.received.seek(0)

    def chunk(self, size_hint: int | None = None) -> bytes:
        """Return the next bytes; b"" at the end."""
        # `size_hint` is ignored: the parser asks for the rest of the body and copies all bytes that
        # it got with each of its reads.
        data = self.arrival.received.read(READ)
        self.starved = self.starved or not data
        return data
