"""Scans of watchlists against a provider that answers after 50 ms, and 100 times a second.

First the scans of 10,000 accounts with 10 items each: how much of the provider's limit is used in
the middle of the time. Then one account with many items, and small accounts that come after it.
"""

import json
import socket
import statistics
import time
from collections.abc import Sequence
from typing import Any

from bench.domains.inside.breach_server import PER_SECOND
from bench.report import Row, Target, find
from bench.servers import LOGS, Servers

TITLE = "Scans of watchlists within a provider's limit"
ACCOUNTS, ITEMS, SECONDS = 10_000, 10, 60
BIG, SMALL = 5_000, 20
RATE, WAIT = "look-ups", "scan of a small account beside a big one"
_SIDE = "bench.domains.inside.scans"
_LOG = "breach-server"


def run(servers: Servers, short: bool) -> list[Row]:
    """Both, each in a database of its own."""
    accounts, seconds = (ACCOUNTS // 20, SECONDS // 3) if short else (ACCOUNTS, SECONDS)
    big, small = (BIG // 2, SMALL // 2) if short else (BIG, SMALL)
    return [_rate(servers, accounts, seconds), _beside(servers, big, small)]


def targets(rows: Sequence[Row]) -> list[Target]:
    """The limit is used, and nobody waits for the big account."""
    text = f"look-ups as a share of the provider's {PER_SECOND}/s"
    return [
        Target(text, find(rows, "Tailrace", RATE) / PER_SECOND, 0.9),
        Target(f"{WAIT}, median s", find(rows, "Tailrace", WAIT), 10, "less"),
    ]


def _rate(servers: Servers, accounts: int, seconds: int) -> Row:
    env, port = _prepared(servers, "scans")
    servers.run(env, "-m", _SIDE, "fill", str(accounts), str(ITEMS))
    servers.run(env, "-m", _SIDE, "enqueue")
    worker = servers.worker(env, "scans-worker")
    while not _stats(port)["answered"]:
        time.sleep(0.1)
    time.sleep(seconds)
    stats = _stats(port)
    servers.stop(worker)
    servers.drop()
    times = stats["answered"]
    tenth = len(times) // 10
    middle = times[tenth : len(times) - tenth]
    rate = (len(middle) - 1) / (middle[-1] - middle[0])
    note = f"{accounts:,} accounts × {ITEMS} items, {seconds} s of it; {stats['refused']} × 429"
    return Row("scans", "Tailrace", RATE, rate, "/s", note, {"refused": stats["refused"]})


def _beside(servers: Servers, big: int, small: int) -> Row:
    env, _port = _prepared(servers, "scans_beside")
    servers.run(env, "-m", _SIDE, "big", str(big))
    worker = servers.worker(env, "scans-worker")
    time.sleep(5)
    done = json.loads(servers.run(env, "-m", _SIDE, "small", str(small)))
    servers.stop(worker)
    servers.drop()
    seconds = done["seconds"]
    if len(seconds) < small or not done["left"]:
        return Row("scans", "Tailrace", WAIT, 0, "s", f"WRONG: {done}")
    note = f"{small} with {ITEMS} items, 5 s after one with {big:,}; longest {max(seconds):.1f} s"
    return Row("scans", "Tailrace", WAIT, statistics.median(seconds), "s", note)


def _prepared(servers: Servers, database: str) -> tuple[dict[str, str], int]:
    """Return the environment of a migrated database, and the port of a new server."""
    log = LOGS / f"{_LOG}.log"
    log.unlink(missing_ok=True)
    servers.start(_LOG, servers.environment("", ""), "-m", "bench.domains.inside.breach_server")
    while not log.exists() or not (port := log.read_text()).endswith("\n"):
        time.sleep(0.05)
    env = servers.environment(
        servers.database(database), servers.broker(),
        PROTECTION_HIBP_URL=f"http://127.0.0.1:{port.strip()}",
        PROTECTION_HIBP_KEY="0" * 32, PROTECTION_HIBP_PER_MINUTE=str(60 * PER_SECOND),
    )  # fmt: skip
    servers.run(env, "-m", "bench.sides.tailrace", "prepare")
    return env, int(port)


def _stats(port: int) -> dict[str, Any]:
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        connection.sendall(b"GET /stats HTTP/1.1\r\nHost: bench\r\n\r\n")
        reply = b""
        while not reply.endswith(b"}"):
            reply += connection.recv(65536)
    stats: dict[str, Any] = json.loads(reply.partition(b"\r\n\r\n")[2])
    return stats
