"""An incoming request: the event loop of a web process collects it, then gunicorn parses it."""

from tempfile import SpooledTemporaryFile

from gunicorn.http.errors import NoMoreData
from gunicorn.http.unreader import Unreader

from tailrace.web.bodies import LARGE, SLOWEST, SLOWEST_LARGE, SMALL, BodyLimits

MAX_HEAD = 64 * 1024
READ = 64 * 1024
"""Bytes that the parser reads at once."""
END_OF_HEAD = b"\r\n\r\n"
MOST_DIGITS = 18
"""Of a Content-Length. Python refuses to read numbers of thousands of digits."""


class HeadTooLarge(Exception):
    """The head does not end within MAX_HEAD bytes."""


class Arrival:
    """The part of a request that has arrived.

    `until` is the deadline for what comes next, by the caller's clock: the head may take
    `patience` seconds; the body may pause for as long, and arrive at the minimum rate after as
    many. A body that is not small waits, until `admit` is called, or `decline`.
    """

    def __init__(self, limits: BodyLimits, now: float, patience: float) -> None:
        self.limits, self.patience = limits, patience
        self.until = now + patience
        self.received = SpooledTemporaryFile(max_size=SMALL)  # noqa: SIM115 - read by gunicorn
        self.head = bytearray()
        self.has_head = False
        self.path = b""
        self.method = b""
        self.fields: dict[bytes, list[bytes]] = {}
        """The values of the headers, by their names in lower case."""
        self.length = 0
        """Bytes of the body, by the head; 0 if they are unknown."""
        self.missing = 0
        """Bytes of the body that have not arrived yet and are received."""
        self.cut = False
        """Whether the request has a body that is not received."""
        self.is_too_long = False
        self.waits = False
        """Whether the body is not received until `admit` or `decline` is called."""
        self.app_refuses = True
        """Whether the app refuses the request by its head if its body is not received."""
        self.user: int | None = None
        """The id of the signed-in user, if the body was admitted."""
        self.network = ""
        """The network of the client, if the caller has set it."""
        self.excess = b""
        """Bytes after the request: the beginning of the next one."""
        self._held = b""
        self._body_began = 0.0

    @property
    def complete(self) -> bool:
        return self.has_head and not self.missing and not self.waits

    @property
    def is_large(self) -> bool:
        return self.length > LARGE

    @property
    def arrived(self) -> int:
        """Bytes of the body that have arrived and are received."""
        return 0 if self.cut or self.waits else self.length - self.missing

    @property
    def expects_continue(self) -> bool:
        return self.field(b"expect").lower() == "100-continue"

    def field(self, name: bytes) -> str:
        """Return the values of a header, joined by commas; "" without it."""
        return b",".join(self.fields.get(name, ())).decode("latin-1")

    def add(self, data: bytes, now: float) -> None:
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
            self._body_began = now
        if self.waits:
            self._held, self.until = data, now + self.patience
        else:
            self._add_body(data, now)

    def admit(self, user: int, now: float) -> None:
        """Receive the body, which this user sends. Raises OSError of the temporary file."""
        held, self._held = self._held, b""
        self.waits, self.user, self.missing, self._body_began = False, user, self.length, now
        self._add_body(held, now)

    def decline(self) -> None:
        """Do not receive the body."""
        self.waits, self.cut, self._held = False, True, b""

    def _add_body(self, data: bytes, now: float) -> None:
        body, self.excess = data[: self.missing], data[self.missing :]
        self.received.write(body)
        self.missing -= len(body)  # afterwards: bytes that were not written have not arrived
        rate = SLOWEST_LARGE if self.is_large else SLOWEST
        self.until = self.patience + min(now, self._body_began + self.arrived / rate)

    def _read_head(self) -> None:
        """Read path, headers and body length. If the head is invalid, no body is received, since
        gunicorn refuses the request."""
        self.has_head = True
        request_line, *lines = bytes(self.head).split(b"\r\n")
        self.method, _, target = request_line.partition(b" ")
        self.path = target.partition(b" ")[0].partition(b"?")[0]
        for name, _, value in (line.partition(b":") for line in lines):
            self.fields.setdefault(name.lower(), []).append(value.strip(b" \t"))
        limit = self.limits.of(self.path)
        self.app_refuses = limit.app_refuses
        lengths = set(self.fields.get(b"content-length", [b"0"]))
        length = lengths.pop()
        is_known = not lengths and length.isdigit() and len(length) <= MOST_DIGITS
        if not is_known or b"transfer-encoding" in self.fields:
            self.cut = True
            return
        self.length = int(length)
        self.cut = self.is_too_long = self.length > limit.longest
        self.waits = not self.cut and self.length > SMALL
        self.missing = 0 if self.cut or self.waits else self.length


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
        """Return the next bytes; b"" at the end. Raises NoMoreData, an OSError, at a body that was
        not received."""
        # `size_hint` is ignored: the parser asks for the rest of the body and copies all bytes that
        # it got with each of its reads.
        data = self.arrival.received.read(READ)
        self.starved = self.starved or not data
        if self.arrival.cut and not data:
            raise NoMoreData
        return data
