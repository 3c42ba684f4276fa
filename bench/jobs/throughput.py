"""Side effects per second: ours, careful and stateless Celery, other queues, and PostgreSQL alone.

Each event owes four side effects; each effect inserts one row, which is counted. A side publishes
all events first; then its workers, as many processes as cores, work the backlog off. The rate is
taken between the first row and the last, so starting up costs nobody anything. No statistics are
made before: the planner knows as much as on the first day of an installation.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from bench.report import Row, Target, find
from bench.servers import ROOT, Servers, dsn

TITLE = "Throughput: side effects per second"
OWED = 4
DRAIN = "a backlog worked off"
BESIDE = "published one by one beside the work"


@dataclass(frozen=True)
class Side:
    """A program with prepare, publish N and work; `events` take it about ten seconds."""

    name: str
    module: str
    events: int
    variables: dict[str, str] = field(default_factory=dict)
    publisher: str = ""
    at_once: int | None = None


SIDES = (
    Side("Tailrace, handle_batch", "tailrace", 20_000, {"BENCH_VARIANT": "batch"}, at_once=1000),
    Side("Tailrace, handle", "tailrace", 10_000, {"BENCH_VARIANT": "single"}, at_once=1000),
    Side("raw SQL", "raw", 20_000, {}, "tailrace", at_once=1000),
    Side("Celery, careful", "celery_careful", 2_000),
    Side("Celery, stateless", "celery_stateless", 5_000),
    Side("Dramatiq", "dramatiq_side", 5_000),
    Side("Procrastinate", "procrastinate_side", 1_500),
    Side("django-tasks", "django_tasks_db", 1_500),
)


def run(servers: Servers, short: bool) -> list[Row]:
    """Measure all sides, one after the other."""
    share = 10 if short else 1
    rows = [drain(servers, side, side.events // share) for side in SIDES]
    rows += [_beside(servers, side, 2_000 // share) for side in SIDES[:1] + SIDES[3:4]]
    return rows


def targets(rows: Sequence[Row]) -> list[Target]:
    """How many times faster than Celery and the other queues."""
    batch, single = (find(rows, SIDES[n].name, DRAIN) for n in (0, 1))
    careful, stateless = (
        find(rows, "Celery, careful", DRAIN),
        find(rows, "Celery, stateless", DRAIN),
    )
    peers = max(find(rows, side.name, DRAIN) for side in SIDES[5:])
    raw = find(rows, "raw SQL", DRAIN)
    return [
        Target("handle_batch against careful Celery", batch / (careful or 1), 10),
        Target("handle_batch against stateless Celery", batch / (stateless or 1), 5),
        Target("handle_batch against the fastest peer", batch / (peers or 1), 1),
        Target("handle_batch against raw SQL", batch / (raw or 1), 0.6),
        Target("handle against careful Celery", single / (careful or 1), 3),
    ]


def _prepared(servers: Servers, side: Side, root: Path = ROOT) -> tuple[dict[str, str], str]:
    database = servers.database("throughput")
    env = servers.environment(database, servers.broker(), **side.variables)
    publisher = f"bench.sides.{side.publisher or side.module}"
    servers.run(env, "-m", publisher, "prepare", root=root)
    return env, publisher


def drain(servers: Servers, side: Side, events: int, root: Path = ROOT) -> Row:
    """Publish a backlog and let workers of that checkout work it off; the rate at which they do."""
    env, publisher = _prepared(servers, side, root)
    words = [str(events), *([str(side.at_once)] if side.at_once else [])]
    servers.run(env, "-m", publisher, "publish", *words, root=root)
    with psycopg.connect(dsn(env["DATABASE_URL"]), autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        command = ["-m", f"bench.sides.{side.module}", "work"]
        worker = servers.start(f"throughput-{side.module}", env, *command, root=root)
        wrong = await_effects(connection, events * OWED)
        servers.stop(worker)
        rate = rate_of_effects(connection)
    servers.drop()
    note = wrong or f"{events:,} events, {events * OWED:,} effects, each counted once"
    return Row("throughput", side.name, DRAIN, 0 if wrong else rate, "effects/s", note)


def _beside(servers: Servers, side: Side, events: int) -> Row:
    env, publisher = _prepared(servers, side)
    worker = servers.start(f"beside-{side.module}", env, "-m", f"bench.sides.{side.module}", "work")
    with psycopg.connect(dsn(env["DATABASE_URL"]), autocommit=True) as connection:
        servers.run(env, "-m", publisher, "publish", "1")  # when it is handled, the workers are up
        await_effects(connection, OWED)
        began = time.monotonic()
        servers.run(env, "-m", publisher, "publish", str(events))
        published = time.monotonic() - began
        wrong = await_effects(connection, (events + 1) * OWED)
        seconds = time.monotonic() - began
    servers.stop(worker)
    servers.drop()
    note = wrong or f"{events:,} events, published within {published:.1f} s of {seconds:.1f} s"
    return Row("throughput", side.name, BESIDE, events * OWED / seconds, "effects/s", note)


def await_effects(connection: psycopg.Connection, wanted: int, patience: float = 60) -> str:
    """Wait for that many effects; return an error if none came for `patience` seconds."""
    count, since = 0, time.monotonic()
    while count < wanted:
        row = connection.execute("SELECT count(*) FROM bench_effect").fetchone()
        if row and row[0] > count:
            count, since = row[0], time.monotonic()
        elif time.monotonic() - since > patience:
            return f"WRONG: {count} effects of {wanted}, and no more came"
        time.sleep(0.25)
    row = connection.execute("SELECT count(*), count(DISTINCT job) FROM bench_effect").fetchone()
    return "" if row == (wanted, wanted) else f"WRONG: {row} effects and jobs, {wanted} expected"


def rate_of_effects(connection: psycopg.Connection) -> float:
    row = connection.execute(
        "SELECT count(*) / extract(epoch FROM max(at) - min(at))::float8 FROM bench_effect"
    ).fetchone()
    return float(row[0]) if row and row[0] else 0.0
