"""How long from the commit of an event to the start of its handlers, under a steady load.

A publisher, a worker with as many processes as cores, a beat and the broker, as they ship. Each
event has four jobs in four queues. Both clocks are CLOCK_MONOTONIC of one machine.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from subprocess import Popen

from bench.report import Row, Target, find, percentile
from bench.servers import LOGS, Servers

TITLE = "Latency: from commit to the start of a handler"
OWED = 4
RATES = (10, 100)
SECONDS = 20
OURS, PLAIN = "Tailrace", "Celery, delay_on_commit ×4"
SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


def run(servers: Servers, short: bool) -> list[Row]:
    """Both sides at both rates."""
    seconds = 5 if short else SECONDS
    return [
        row
        for rate in RATES
        for side in (OURS, PLAIN)
        for row in _measure(servers, side, rate, seconds)
    ]


def targets(rows: Sequence[Row]) -> list[Target]:
    """At 100 events/s."""
    return [
        Target("p50 at 100 events/s, ms", find(rows, OURS, work(100, "p50")), 12, "less"),
        Target("p99 at 100 events/s, ms", find(rows, OURS, work(100, "p99")), 50, "less"),
    ]


def work(rate: int, share: str) -> str:
    """The name of a row."""
    return f"commit → start at {rate} events/s, {share}"


def _measure(servers: Servers, side: str, rate: int, seconds: int) -> list[Row]:
    word = "tailrace" if side == OURS else "celery"
    stamps, published = LOGS / f"stamps-{word}-{rate}", LOGS / f"published-{word}-{rate}"
    for path in (stamps, published):
        path.unlink(missing_ok=True)
    env = servers.environment(
        servers.database("latency"),
        servers.broker(),
        BENCH_VARIANT="stamp",
        BENCH_STAMPS=str(stamps),
    )
    servers.run(env, "-m", "bench.sides.tailrace", "prepare")
    processes = [*_workers(servers, side, env)]
    try:
        servers.run(
            env,
            "-m",
            "bench.sides.steady_load.publisher",
            word,
            str(rate),
            str(seconds),
            str(published),
        )
        waits, calls, lost = joined(published, stamps)
    finally:
        for process in processes:
            servers.stop(process)
        servers.drop()
    return _rows(side, rate, waits, calls, lost)


def _workers(servers: Servers, side: str, env: dict[str, str]) -> list[Popen[bytes]]:
    if side == OURS:
        beat = ("-m", "celery", "-A", "tailrace.config", "beat", "--pidfile=", "-l", "WARNING")
        return [
            servers.worker(env, "latency-worker"),
            servers.start("latency-beat", env, *beat),
        ]
    return [plain_worker(servers, env, "latency-plain", [f"plain.effect_{x}" for x in "abcd"])]


def plain_worker(
    servers: Servers, env: dict[str, str], log: str, queues: Sequence[str]
) -> Popen[bytes]:
    """Start a worker of plain Celery for these queues, with as many processes as cores."""
    return servers.start(
        log, env, "-m", "celery", "-A", "bench.sides.steady_load.celery_tasks", "worker",
        "-l", "WARNING", "-c", str(servers.cores), "-Q", ",".join(queues),
    )  # fmt: skip


def joined(
    published: Path, stamps: Path, patience: float = 20
) -> tuple[list[float], list[tuple[float, float]], int]:
    """Waits in ms of all starts; (call, transaction) in ms of each event; starts that lack."""
    commits: dict[int, float] = {}
    calls = []
    for line in published.read_text().splitlines():
        event, commit, call, transaction = line.split()
        commits[int(event)] = float(commit)
        calls.append((float(call) * 1000, float(transaction) * 1000))
    until = time.monotonic() + patience
    while True:
        began = [line.split() for line in _whole_lines(stamps)]
        waits = [(float(at) - commits[int(id)]) * 1000 for id, at in began if int(id) in commits]
        lost = len(commits) * OWED - len(waits)
        if lost <= 0 or time.monotonic() > until:
            return waits, calls, lost
        time.sleep(0.2)


def _whole_lines(path: Path) -> list[str]:
    text = path.read_text() if path.exists() else ""
    return text[: text.rfind("\n") + 1].splitlines()


def _rows(
    side: str, rate: int, waits: list[float], calls: list[tuple[float, float]], lost: int
) -> list[Row]:
    note = f"{len(waits):,} starts, worst {max(waits, default=0):.0f} ms"
    if lost:
        note = f"WRONG: {lost} starts lack; {note}"
    rows = [
        Row("latency", side, work(rate, name), percentile(waits, share), "ms", note)
        for name, share in SHARES.items()
    ]
    call, transaction = zip(*calls, strict=True)
    whole, slow = percentile(transaction, 0.5), percentile(call, 0.99)
    note = f"of a transaction of {whole:.2f} ms; p99 {slow:.1f}"
    name = f"the call that publishes, at {rate} events/s, p50"
    return [*rows, Row("latency", side, name, percentile(call, 0.5), "ms", note)]
