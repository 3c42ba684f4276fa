"""The chain of records, from a source to both indexes, with batches of 100, of 1, and as it ships.

One source, read by OAI-PMH page by page; each record is deposited, validated, approved, published
and indexed for words and for meaning (by the model that the project brings).
"""

import json
import time
from collections.abc import Sequence
from typing import Any

from bench.report import Row, Target, find
from bench.servers import LOGS, Servers

TITLE = "Records from a source to both indexes"
SHIPPED = 0
COUNTS = {100: 20_000, 1: 2_000, SHIPPED: 4_000}
"""Records by the size of the batches; as it ships, the keyword index takes records one by one."""
_SIDE = "bench.domains.inside.records"
_LOG = "record-server"


def run(servers: Servers, short: bool) -> list[Row]:
    """All of them, each in a database of its own."""
    return [_chain(servers, size, count // (5 if short else 1)) for size, count in COUNTS.items()]


def targets(rows: Sequence[Row]) -> list[Target]:
    """The chain is fast, and because of its batches."""
    together, alone = (find(rows, "Tailrace", _work(size)) for size in (100, 1))
    return [
        Target("records through the whole chain, in batches of 100, /s", together, 1000),
        Target("batches of 100 against batches of 1", together / max(alone, 0.01), 5),
    ]


def _work(size: int) -> str:
    return f"whole chain, batches of {size}" if size else "whole chain, as it ships"


def _chain(servers: Servers, size: int, count: int) -> Row:
    done = harvest(servers, count, size=size)
    if not done["complete"]:
        return Row("records", "Tailrace", _work(size), 0, "/s", f"WRONG: {done}")
    note = f"{count:,} records, seven jobs each"
    return Row("records", "Tailrace", _work(size), count / done["seconds"], "/s", note)


def harvest(
    servers: Servers, count: int, *, size: int = SHIPPED, deposit_every: int = 0
) -> dict[str, Any]:
    """Harvest so many records into an empty database, while users make a deposit every
    `deposit_every` seconds (0: none).

    Returns the seconds that the harvest took, the seconds until each deposit was found, and whether
    all records are in all indexes.
    """
    port = _record_server(servers, count)
    env = servers.environment(
        servers.database(f"records_{size}"), servers.broker(),
        RECORDS_LOCAL_SOURCES=f"http://127.0.0.1:{port}",
        RECORDS_REQUESTS_PER_SECOND="1000", BENCH_RECORDS_BATCH=str(size),
    )  # fmt: skip
    servers.run(env, "-m", "bench.sides.tailrace", "prepare")
    servers.run(env, "-m", _SIDE, "begin", str(port))
    worker = servers.worker(env, "records-worker")
    done: dict[str, Any] = json.loads(
        servers.run(env, "-m", _SIDE, "wait", str(count), str(deposit_every))
    )
    servers.stop(worker)
    servers.drop()
    return done


def _record_server(servers: Servers, count: int) -> int:
    """Start the repository, and return its port."""
    log = LOGS / f"{_LOG}.log"
    log.unlink(missing_ok=True)
    servers.start(
        _LOG, servers.environment("", ""), "-m", "bench.domains.inside.record_server", str(count)
    )
    while not log.exists() or not (port := log.read_text()).endswith("\n"):
        time.sleep(0.05)
    return int(port)
