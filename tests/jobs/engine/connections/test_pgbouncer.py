"""Everything works behind PgBouncer in transaction mode, where each transaction may run in another
session of the server, and sessions are shared with other clients."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.db import OperationalError, connection, connections, transaction

from tailrace.db.connections import ENGINE, atomic, engine, timed_out
from tailrace.db.engine_database import LOCK_SECONDS
from tailrace.db.query import execute, prepared, query
from tailrace.events.management.subcommands import call_subcommand
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.engine.maintenance.pruning import prune
from tailrace.jobs.engine.maintenance.sweeping import sweep
from tailrace.jobs.engine.maintenance.ticking import tick
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.models import Job, Queue, QueueActivity
from tests.kit import at_once, empty_broker, wait_until, worker
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Fair, Ordered, Working
from tests.sandbox.models import Effect
from tests.servers.pgbouncer import PgBouncer, pgbouncer
from tests.servers.relay import through

pytestmark = pytest.mark.django_db(transaction=True)

SIZE = 3
"""Server connections, fewer than the threads and processes of each test."""


@contextmanager
def pooled(pooler: PgBouncer) -> Iterator[None]:
    """Let all connections of this process, in every thread, lead through the pooler."""
    with through(pooler.port, USER=pooler.user, PASSWORD=""):
        for database in connections.settings.values():
            database["OPTIONS"] = database["OPTIONS"] | {"prepare_threshold": None}
        connections.settings[ENGINE]["POOLED"] = (
            True  # as settings.py does with DATABASE_PREPARE=no
        )
        yield


@pytest.fixture
def pooler(transactional_db: None) -> Iterator[PgBouncer]:
    with pgbouncer(dict(connection.settings_dict), SIZE) as pooler, pooled(pooler):
        yield pooler


@pytest.fixture
def one_session(transactional_db: None) -> Iterator[PgBouncer]:
    """A pooler whose clients all share one session of the server."""
    with pgbouncer(dict(connection.settings_dict), 1) as pooler, pooled(pooler):
        yield pooler


def work_off(*names: str) -> Callable[[int], None]:
    """Drain these queues until no job of them is left."""

    def work(number: int) -> None:
        live = Job.objects.filter(handler__in=names, state__in=("pending", "running"))
        wait_until(lambda: [drain(name) for name in names] and not live.exists(), 60)

    return work


def test_events_and_jobs_over_few_sessions(pooler, clock) -> None:
    def publish_some(number: int) -> None:
        for n in range(10):
            with transaction.atomic():
                publish(NewEvent(Happened, {"who": f"who{n % 5}", "n": n, "tags": ["a", "b"]}))

    at_once(6, publish_some)
    clock.step(120)
    names = ("test.log", "test.family", "test.keyed", "test.debounced")
    at_once(4, work_off(*names))
    ran = Job.objects.exclude(state="skipped")  # the others were merged into one of these
    jobs = {name: ran.filter(handler=name).count() for name in names}
    assert jobs == {"test.log": 60, "test.family": 60, "test.keyed": 120, "test.debounced": 5}
    # On a busy machine, a drain hands jobs back that it did not begin: their claims count on.
    assert set(ran.values_list("state", "attempt")) == {("completed", 1)}
    assert Effect.objects.count() == sum(jobs.values())


def test_ordered_lanes_and_limits_hold_in_shared_sessions(pooler, scripted) -> None:
    running, most, guard = [0], [0], threading.Lock()

    def work(job: ClaimedJob) -> None:
        with guard:
            running[0] += 1
            most[0] = max(most[0], running[0])
        Effect.objects.create(handler=job.handler.name, job_id=job.id, claim_no=job.claim_no)
        with guard:
            running[0] -= 1

    scripted("test.work", work)
    Queue.objects.filter(name="test.work").update(max_running=1)
    enqueue_many(Ordered, [{"lane": f"lane{n % 3}"} for n in range(24)])
    enqueue_many(Fair, [{"lane": f"lane{n % 3}"} for n in range(24)])
    enqueue_many(Working, [{}] * 24)
    at_once(5, work_off("test.ordered", "test.fair", "test.work"))
    assert most == [1]
    assert Effect.objects.count() == 72
    lanes: dict[str, list[int]] = {}
    for id in Effect.objects.filter(handler="test.ordered").order_by("id").values_list("job_id"):
        lanes.setdefault(Job.objects.get(pk=id[0]).lane, []).append(id[0])
    assert [ids == sorted(ids) and len(ids) for ids in lanes.values()] == [8, 8, 8]


def everything() -> None:
    """Publish, wake, claim, run, settle, tick, sweep, prune and check the stored state."""
    with transaction.atomic():
        publish(NewEvent(Happened, {"who": "me", "tags": ["a"]}))
    for handler in (Working, Fair, Ordered):
        enqueue(handler, lane="a")
        enqueue(handler, {"do": "raise"}, lane="b")
    wake.wake(["test.work"])
    for name in registry.all_handlers():
        drain(name)
    tick.tick()
    assert {run.error for run in sweep.sweep()} == {""}
    prune.prune()
    call_subcommand("fsck", pause=0)


STATE = """
SELECT 'setting', name, setting FROM pg_settings WHERE name <> 'application_name'
UNION ALL SELECT 'lock', locktype, mode FROM pg_locks
  WHERE pid = pg_backend_pid() AND locktype = 'advisory'
UNION ALL SELECT 'prepared', name, '' FROM pg_prepared_statements
UNION ALL SELECT 'cursor', name, '' FROM pg_cursors WHERE name <> ''
UNION ALL SELECT 'channel', c, '' FROM pg_listening_channels() c
UNION ALL SELECT 'table', relname, '' FROM pg_class
  WHERE relpersistence = 't' AND pg_table_is_visible(oid)
UNION ALL SELECT 'session', pg_backend_pid()::text, ''
"""


def test_no_state_is_left_in_a_shared_session(one_session, scripted) -> None:
    scripted("test.work", lambda job: job.progress(1, 2, "half"))
    with one_session.connect() as other:
        before = set(other.execute(STATE).fetchall())
        everything()
        assert set(other.execute(STATE).fetchall()) == before


LIMITS = "SELECT current_setting('lock_timeout'), current_setting('enable_seqscan')"


def test_limits_of_the_engine_hold_in_a_shared_session(one_session) -> None:
    with engine(), atomic():
        assert query(LIMITS) == [(f"{LOCK_SECONDS}s", "off")]
    with engine():
        assert query(LIMITS) == prepared(LIMITS) == [(f"{LOCK_SECONDS}s", "off")]
    assert query(LIMITS) == [("0", "on")]


@pytest.mark.slow
def test_the_engine_waits_for_no_lock_behind_a_pooler(pooler) -> None:
    with transaction.atomic():
        list(QueueActivity.objects.select_for_update().filter(name="test.work"))
        with engine(), pytest.raises(OperationalError) as error:
            execute("UPDATE tailrace_jobs_queueactivity SET resends = 0 WHERE name = 'test.work'")
        assert timed_out(error.value)
    with engine():
        assert (
            execute("UPDATE tailrace_jobs_queueactivity SET resends = 0 WHERE name = 'test.work'")
            == 1
        )


def test_rows_are_read_in_pieces_behind_a_pooler(pooler) -> None:
    """A cursor of the server lives in one session; the next piece may be read in another one."""
    enqueue_many(Working, [{}] * 5)
    rows = Job.objects.iterator(chunk_size=1)
    next(rows)
    with pooler.connect() as other, other.transaction():
        other.execute("SELECT 1")  # takes the session that the first piece was read in
        assert len(list(rows)) == 4


def settled() -> int:
    return Job.objects.filter(state="completed").count()


@pytest.mark.slow
def test_workers_share_few_sessions(process_env, tmp_path: Path) -> None:
    empty_broker()
    with pgbouncer(dict(connection.settings_dict), SIZE) as pooler:
        env = process_env | {"DATABASE_URL": pooler.url, "DATABASE_PREPARE": "no"}
        queues = ("test.work", "test.fair", "test.ordered")
        with (
            worker(env, queues, log=tmp_path / "one.log", concurrency=3),
            worker(env, queues, log=tmp_path / "two.log", concurrency=3) as second,
        ):
            for _ in range(5):
                for handler in (Working, Fair, Ordered):
                    enqueue_many(handler, [{"lane": f"lane{n % 4}"} for n in range(20)])
                wake.wake(queues)
            wait_until(lambda: tick.tick() >= 0 and settled() == 300, 90)
            assert "prepared statement" not in second.output
        assert Effect.objects.values("job_id").distinct().count() == 300 == Effect.objects.count()
        pools = [pool for pool in pooler.show("POOLS") if pool["database"] != "pgbouncer"]
        assert {pool["pool_mode"] for pool in pools} == {"transaction"}
