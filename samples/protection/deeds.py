"""The public records of a building, for the sample source of `make run`. All are made up.

After the first reading a deed with another owner is added, which the next scan finds.
"""

from tailrace.net.sample_server import Request
from tailrace.samples.protection.soda import PARTIES, SodaServer

BOROUGH, BLOCK, LOT = 3, 12, 34
"""The lot that is watched for the admin."""
OWNER, BUYER, BANK = "SAMPLE, ADMIN", "SAMPLE HOLDINGS LLC", "SAMPLE BANK"
_ADDRESS = {"number": "5", "street": "SAMPLE STREET"}


def sample_records() -> SodaServer:
    """Return a server with the records of this lot."""
    server = SodaServer()

    def document(id: str, day: str, kind: str, amount: float, sellers: str, buyers: str) -> None:
        server.deed(
            id,
            [buyers],
            [sellers],
            type=kind,
            amount=amount,
            recorded=day,
            borough=BOROUGH,
            block=BLOCK,
            lot=LOT,
            **_ADDRESS,
        )

    def add_new_documents(request: Request) -> None:
        # A scan reads the parties of documents by their ids; the change feed is read without ids.
        if PARTIES in request.path and "document_id%20IN" in request.path:
            server.before = lambda request: None
            document("2026110200017001", "2026-11-02", "DEED", 0, OWNER, BUYER)
            document("2026110200017002", "2026-11-02", "MTGE", 640_000, BUYER, BANK)

    document("2012050100021001", "2012-05-01", "DEED", 410_000, "OTHER, ANN", OWNER)
    document("2012050100021002", "2012-05-01", "MTGE", 300_000, OWNER, BANK)
    server.before = add_new_documents
    return server
