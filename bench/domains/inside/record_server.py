"""A repository that speaks OAI-PMH: COUNT records, 100 to a page, made before; prints its port."""

import asyncio
import sys
from datetime import UTC, datetime
from random import Random
from urllib.parse import parse_qs, urlsplit

from tailrace.samples.records import oai_xml

PAGE = 100
CHANGED = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = """
snow depth wind valley glacier river measurement station winter summer village forest model sample
temperature pressure energy species habitat protein cell language grammar archive letter history
economy trade migration climate rainfall soil mineral galaxy spectrum orbit particle quantum field
""".split()


class Connection(asyncio.Protocol):
    """One that stays; the next request comes after the answer."""

    transport: asyncio.Transport

    def __init__(self, pages: list[bytes]) -> None:
        self.pages = pages
        self.received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        if not self.received.endswith(b"\r\n\r\n"):
            return
        query = parse_qs(urlsplit(self.received.split(b" ", 2)[1].decode()).query)
        self.received = b""
        if query["verb"] == ["Identify"]:
            self.answer(document(IDENTIFY))
        else:
            self.answer(self.pages[int(query.get("resumptionToken", ["0"])[0])])

    def answer(self, body: bytes) -> None:
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
        self.transport.write(body)


IDENTIFY = oai_xml.identify(
    "bench", "http://bench", f"{CHANGED:{oai_xml.SECONDS}}", "no", "YYYY-MM-DDThh:mm:ssZ"
)


def document(content: str) -> bytes:
    return oai_xml.document("http://bench", {}, datetime.now(UTC), content)


def pages(count: int) -> list[bytes]:
    """Return the pages of the list of all records."""
    random = Random(1)
    return [_page(random, begin, count) for begin in range(0, count, PAGE)]


def _page(random: Random, begin: int, count: int) -> bytes:
    end = min(begin + PAGE, count)
    records = "".join(
        _record(random, number).xml(f"{CHANGED:{oai_xml.SECONDS}}") for number in range(begin, end)
    )
    token = str(end // PAGE) if end < count else ""
    token_xml = oai_xml.resumption_token(token, begin, count, None)
    return document(f"<ListRecords>{records}{token_xml}</ListRecords>")


def _record(random: Random, number: int) -> oai_xml.StoredRecord:
    elements = {
        "title": [f"{' '.join(random.sample(WORDS, 6))} {number}"],
        "creator": ["Novak, Ana", "Example, Luc"],
        "subject": random.sample(WORDS, 4),
        "language": ["en"],
        "description": [" ".join(random.choices(WORDS, k=80))],
    }
    return oai_xml.StoredRecord(f"oai:bench:{number}", CHANGED, (), elements)


async def serve(made: list[bytes]) -> None:
    """Until it is killed."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(made), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(pages(int(sys.argv[1]))))
