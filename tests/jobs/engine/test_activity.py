"""The rows that each wake-up and each drain writes are found past few of their old versions."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tailrace.db.query import execute, query
from tailrace.jobs.engine.claiming.begin import begin
from tailrace.jobs.engine.maintenance import sync_declared
from tailrace.jobs.engine.registry import get
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.models import QueueActivity
from tests.kit import (
    PATIENCE,
    another_transaction,
    at_once,
    claimed,
    sessions_that_wait,
    wait_until,
)

pytestmark = pytest.mark.django_db

NAME = "test.work"


def versions_read() -> int:
    """Return how many entries of the table's index this session has read in its transaction."""
    [(count,)] = query(
        "SELECT pg_stat_get_xact_tuples_returned('tailrace_jobs_queueactivity_pkey'::regclass)"
    )
    return int(count)


def test_old_versions_that_cannot_be_removed_are_not_read(clock) -> None:
    """This transaction keeps them, as a held snapshot does."""
    execute("SET LOCAL enable_seqscan = off")  # as the engine's sessions
    for _ in range(100):
        begin(get(NAME))
        clock.step(60)
    before = versions_read()
    wake._mark([NAME])
    begin(get(NAME))
    claimed(NAME)
    assert 0 < versions_read() - before < 25


def test_a_queue_has_one_row_whenever_it_is_written(clock) -> None:
    for _ in range(3):
        assert wake._mark([NAME]) == ([NAME], [])
        clock.step(60)
        begin(get(NAME))
        assert not QueueActivity.objects.get(name=NAME).awake
    clock.step(-600)
    before = QueueActivity.objects.get(name=NAME).slice
    assert wake._mark([NAME]) == ([NAME], [])
    assert QueueActivity.objects.get(name=NAME).slice == before


def test_a_row_that_lacks_is_created_by_the_next_drain_or_process(clock) -> None:
    QueueActivity.objects.filter(name=NAME).delete()
    assert wake.wake([NAME]) == [NAME]
    assert begin(get(NAME)) is not None
    row = QueueActivity.objects.get(name=NAME)
    begin(get(NAME))
    assert QueueActivity.objects.get(name=NAME).drained_at is not None
    QueueActivity.objects.filter(name=NAME).delete()
    sync_declared.add_queues()
    assert QueueActivity.objects.get(name=NAME).slice == row.slice == 0


WAIT = """
CREATE FUNCTION wait_for_lock() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM pg_advisory_xact_lock_shared(1);
  RETURN NULL;
END $$;
CREATE TRIGGER wait_for_lock BEFORE UPDATE ON tailrace_jobs_queueactivity
  FOR EACH STATEMENT EXECUTE FUNCTION wait_for_lock();
"""


@pytest.fixture
def writes_wait() -> Iterator[None]:
    """A statement that writes rows of activity has its snapshot, and goes on when it gets an
    advisory lock."""
    execute(WAIT)
    yield
    execute("DROP FUNCTION wait_for_lock CASCADE")


@pytest.mark.django_db(transaction=True)
def test_a_row_that_has_moved_on_meanwhile_is_written(writes_wait: None) -> None:
    moved = (
        "UPDATE tailrace_jobs_queueactivity SET awake = true, slice = slice + 10 WHERE name = %s"
    )
    with ThreadPoolExecutor() as pool, another_transaction("SELECT pg_advisory_xact_lock(1)") as it:
        begun = pool.submit(at_once, 1, lambda _: begin(get(NAME)))
        wait_until(sessions_that_wait)
        with it.cursor() as cursor:
            cursor.execute(moved, [NAME])
        it.commit()
        assert begun.result(PATIENCE) != [None]
    row = QueueActivity.objects.get(name=NAME)
    assert (row.awake, row.drained_at is None) == (False, False)
