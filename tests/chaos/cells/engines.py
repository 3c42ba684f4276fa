"""PostgreSQL, the broker and a disk fail."""

import signal

from tests.chaos.cells.base import FaultUnavailable, Site, at_work, cell


@cell("cut", plain=True)
def cut(site: Site) -> None:
    """End all sessions of PostgreSQL, eight times."""
    for _ in range(8):
        site.deployment.engines.cut()
        site.deployment.faults.append("sessions ended")
        site.pause(1)


@cell("pg-fast", plain=True)
def pg_fast(site: Site) -> None:
    """Restart PostgreSQL, as an administrator does."""
    site.deployment.engines.postgres.stop()
    site.pause(1)
    site.deployment.engines.postgres.start()
    site.deployment.faults.append("PostgreSQL restarted")


@cell("pg-immediate", plain=True)
def pg_immediate(site: Site) -> None:
    """Let PostgreSQL crash, three times; it recovers from its log."""
    for _ in range(3):
        crash(site)
        site.pause(2)


def crash(site: Site) -> None:
    """Let PostgreSQL crash, and start it again."""
    process = site.deployment.engines.postgres.process()
    assert process, "PostgreSQL does not run"
    process.send_signal(signal.SIGQUIT)
    process.wait(30)
    site.pause(1)
    site.deployment.engines.postgres.start()
    site.deployment.faults.append("PostgreSQL crashed")


@cell("flush", plain=True)
def flush(site: Site) -> None:
    """FLUSHALL, five times."""
    for _ in range(5):
        site.deployment.engines.flush()
        site.deployment.faults.append("flushed")
        site.pause(1)


@cell("redis-restart", plain=True)
def redis_restart(site: Site) -> None:
    """kill -9 the broker, which keeps nothing, and start it anew, twice."""
    for _ in range(2):
        _redis_away(site, 0)
        site.pause(2)


@cell("redis-away", plain=True)
def redis_away(site: Site) -> None:
    """The broker is away for 30 s, while clients publish."""
    _redis_away(site, 30)


def _redis_away(site: Site, seconds: float) -> None:
    process = site.deployment.engines.valkey.process()
    assert process, "the broker does not run"
    process.kill()
    process.wait(30)
    site.pause(seconds)
    site.deployment.engines.valkey.start()
    site.deployment.faults.append("broker restarted")


@cell("disk")
def disk(site: Site) -> None:
    """The disk of the bus file is full for 10 s."""
    if not site.deployment.has_disk:
        raise FaultUnavailable("a disk that can be full needs the right to mount one")
    site.pause(2)
    site.deployment.fill_disk(True)
    site.deployment.faults.append("disk full")
    site.pause(10)
    site.deployment.fill_disk(False)


@cell("xmin")
def xmin(site: Site) -> None:
    """A session idle in its transaction holds xmin for 15 s: nothing can be vacuumed."""
    with site.deployment.engines.connect() as session:
        session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        session.execute("SELECT count(*) FROM tailrace_jobs_queue")
        site.deployment.faults.append("xmin held")
        site.pause(15)
        session.execute("ROLLBACK")


DEAD_ROWS = 100_000

DEAD = """
INSERT INTO tailrace_jobs_job (handler, routing_key, state, priority, lane, due_at, attempt,
  claim_no, worker, isolate, progress_note, error, created_at, cancel_requested)
SELECT 'chaos.one', '', 'pending', 1, '', now() - interval '1 minute', 0, 0, 'dead', false, '', '',
  now(), false
FROM generate_series(1, %s)
"""


@cell("snapshot", goes_on={"chaos.one": 50, "chaos.together": 50}, published=50)
def snapshot(site: Site) -> None:
    """A session holds a snapshot until all is done, so that 100,000 rows of one queue cannot be
    removed; a worker is killed three times, and what became due long before is found."""
    engines, deployment = site.deployment.engines, site.deployment
    session = site.until_settled.enter_context(engines.connect())
    session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    session.execute("SELECT count(*) FROM tailrace_jobs_queue")
    deployment.faults.append("snapshot held")
    with engines.connect() as other:  # rows that no worker ever sees
        other.execute("BEGIN")
        other.execute(DEAD, [DEAD_ROWS])
        other.execute(
            "DELETE FROM tailrace_jobs_job WHERE handler = 'chaos.one' AND worker = 'dead'"
        )
        other.execute("COMMIT")
    with site.holding():
        site.pause(10)
    for _ in range(3):
        deployment.kill(at_work(site))
        site.pause(3)
