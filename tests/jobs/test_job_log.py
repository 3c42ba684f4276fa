"""`job.log`: written while the call runs, whatever becomes of it, and bounded."""

import threading
from collections.abc import Sequence

import pytest
from django.db import transaction

from tailrace.jobs.engine import registry
from tailrace.jobs.engine.maintenance import sync_declared
from tailrace.jobs.engine.maintenance.pruning import prune
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.handler import ClaimedJob, Handler
from tailrace.jobs.models import Job, LogLines
from tailrace.jobs.platform.inspection.details.job_log import Log, claims_with_log, log_of
from tailrace.jobs.runtime import job_log
from tests.kit import (
    another_transaction,
    claimed,
    run_and_settle,
    sessions_that_wait,
    wait_until,
)

pytestmark = pytest.mark.django_db(transaction=True)


class Sync(Handler):
    """Log in a transaction that is rolled back."""

    name = "joblog.sync"

    def handle(self, job: ClaimedJob) -> None:
        with transaction.atomic():
            job.log("first\nsecond")
            raise RuntimeError("the transaction is undone")


class Async(Handler):
    """Log from a coroutine."""

    name = "joblog.async"

    async def handle(self, job: ClaimedJob) -> None:
        job.log({"a": 1})


class Batch(Handler):
    """Log for each job of a batch."""

    name = "joblog.batch"

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        for job in jobs:
            job.log(f"job {job.id}")


class Watched(Handler):
    """Wait until others see the line that was logged before."""

    name = "joblog.watched"
    backoff = Sync.backoff

    def handle(self, job: ClaimedJob) -> str:
        job.log("still running")
        wait_until(lambda: LogLines.objects.filter(job=job.id).exists())
        return Job.objects.get(pk=job.id).state


class Silent(Handler):
    """Log nothing."""

    name = "joblog.silent"

    def handle(self, job: ClaimedJob) -> None:
        return None


@pytest.fixture(autouse=True)
def _handlers() -> None:
    registry.clear()
    sync_declared.sync()


def _run(handler: type[Handler], count: int = 1) -> list[int]:
    ids = [enqueue(handler) or 0 for _ in range(count)]
    run_and_settle(claimed(handler.name, count))
    job_log.flush()
    return ids


def _texts(log: Log) -> list[str]:
    return [line.text for line in log.lines]


def test_a_rolled_back_call_keeps_its_lines() -> None:
    [id] = _run(Sync)
    assert _texts(log_of(id, 1)) == ["first", "second"]
    assert [line.number for line in log_of(id, 1, after=1).lines] == [2]


def test_async_handlers_and_batches_log_for_each_job() -> None:
    assert _texts(log_of(_run(Async)[0], 1)) == ["{'a': 1}"]
    for id in _run(Batch, 3):
        assert _texts(log_of(id, 1)) == [f"job {id}"]


def test_a_line_is_stored_while_its_call_runs() -> None:
    [id] = _run(Watched)
    assert Job.objects.get(pk=id).result == "running"


def test_who_logs_nothing_writes_nothing_and_starts_no_thread() -> None:
    wait_until(lambda: "job-log" not in {thread.name for thread in threading.enumerate()})
    _run(Silent)
    assert "job-log" not in {thread.name for thread in threading.enumerate()}
    assert not LogLines.objects.exists()


def _claim(number: int = 1) -> ClaimedJob:
    [job] = claimed(Silent.name) if Job.objects.pending().exists() else [_again()]
    job.claim_no = number
    return job


def _again() -> ClaimedJob:
    id = Job.objects.get().pk
    return ClaimedJob(id, registry.get(Silent.name), "", None, "", 1, 1, "w", None)


def test_the_last_lines_of_the_last_claims_are_kept() -> None:
    id = enqueue(Silent) or 0
    job = _claim()
    for part in range(3):
        for number in range(150):
            job.log(f"{part}.{number} " + "x" * 1000)
        job_log.flush()
    log = log_of(id, 1)
    assert [line.number for line in log.lines] == [*range(251, 451)]
    assert log.left_out == 250
    assert {len(line.text) for line in log.lines} == {job_log.MAX_LENGTH}
    rows = LogLines.objects.filter(job=id).count()
    assert rows <= 3, "what is older than the last lines is deleted"
    for claim_no in range(2, 20):
        _claim(claim_no).log("again")
        job_log.flush()
    assert claims_with_log(id) == [*range(19, 9, -1)]


def test_more_lines_than_can_wait_are_left_out_and_not_kept_in_memory() -> None:
    enqueue(Silent)
    job = _claim()
    with another_transaction("LOCK TABLE tailrace_jobs_loglines IN ACCESS EXCLUSIVE MODE"):
        job.log("this one waits for the table")
        wait_until(sessions_that_wait)

        def most_that_wait() -> int:
            most = 0
            for _ in range(2 * job_log.MAX_WAITING):
                job.log("quick")
                most = max(most, job_log._writer._state.lines.qsize())
            return most

        # Where the machine is busy, the writer meanwhile gives up waiting, and drops what it has.
        wait_until(lambda: most_that_wait() >= job_log.MAX_WAITING)
        assert most_that_wait() <= job_log.MAX_WAITING
    job_log.flush(10)
    assert len(log_of(job.id, 1).lines) == job_log.MAX_LINES


def test_what_cannot_be_stored_as_it_is_becomes_storable() -> None:
    id = enqueue(Silent) or 0
    _claim().log("a\0b\ud800")
    job_log.flush()
    assert _texts(log_of(id, 1)) == ["a\ufffdb?"]


def test_a_log_goes_with_its_job_and_none_comes_later(settings, clock) -> None:
    id = enqueue(Silent) or 0
    job = _claim()
    job.log("here")
    job_log.flush()
    Job.objects.update(state="completed", finished_at=clock.now())
    clock.step((settings.JOBS_RETENTION_DAYS + 1) * 86_400)
    prune.prune()
    assert not LogLines.objects.exists()
    job.log("too late")
    job_log.flush()
    assert not LogLines.objects.filter(job=id).exists()
