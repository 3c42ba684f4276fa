"""Exceptions are retried by backoff, recorded and reported; the last one fails the job."""

import json
from collections.abc import Iterator

import pytest

from tailrace.jobs.engine.drain import drain
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.handler import Backoff, Cancel, Permanent, Skip, Snooze
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.runtime import report
from tests.jobs.engine.run.raising import raising
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db


def test_an_exception_is_retried_by_backoff_with_jitter(run_one, monkeypatch, clock) -> None:
    monkeypatch.setattr(Working, "backoff", Backoff(60, 300))
    job = run_one(raising(ValueError("no")))
    assert (job.state, job.attempt, job.error) == ("pending", 1, "no")
    assert 30 <= (job.due_at - clock.now()).total_seconds() <= 72.5
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.error_class) == ("retried", "builtins.ValueError")
    assert (attempt.claim_no, attempt.message) == (1, "no")
    assert "in call" in attempt.traceback
    clock.step(73)
    drain("test.work")
    job.refresh_from_db()
    assert 200 <= (job.due_at - clock.now()).total_seconds() <= 360.5


def test_the_last_attempt_fails(run_one, clock) -> None:
    job = run_one(raising(ValueError("no")))
    for _ in range(5):
        clock.step(400)
        drain("test.work")
    job.refresh_from_db()
    assert (job.state, job.attempt, job.error) == ("failed", 3, "no")
    outcomes = Attempt.objects.order_by("id").values_list("outcome", flat=True)
    assert list(outcomes) == ["retried", "retried", "failed"]


def test_backoff_repeats_its_last_wait() -> None:
    waits = Backoff(10, 20, jitter=0)
    assert [waits.after(attempt) for attempt in (0, 1, 2, 3, 99)] == [10, 10, 20, 20, 20]
    spread = {Backoff(100).after(1) for _ in range(200)}
    assert min(spread) >= 80
    assert max(spread) <= 120
    assert len(spread) > 100


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a\0b\ud800"),
        Skip("a\0b\ud800"),
        Cancel("a\0b\ud800"),
        Permanent("a\0b\ud800"),
        Snooze("a\0b", seconds=1),
        ValueError("x" * 1_000_000),
        Unspeakable(),
    ],
    ids=["error", "skip", "cancel", "permanent", "snooze", "long", "unspeakable"],
)
def test_a_job_is_settled_whatever_the_text_of_its_error(run_one, error) -> None:
    job = run_one(raising(error))
    assert job.state != "running"
    assert "\0" not in job.error
    assert len(job.error) <= 2000
    assert all(len(row.traceback) <= 8192 for row in Attempt.objects.all())


failures: list[report.Failure] = []


def crash(failure: report.Failure) -> None:
    raise RuntimeError("a reporter that fails hinders nobody")


def keep(failure: report.Failure) -> None:
    failures.append(failure)


@pytest.fixture
def reporters(settings) -> Iterator[None]:
    """One that crashes and one that keeps what is reported."""
    settings.JOBS_ERROR_REPORTERS = [f"{__name__}.{call.__name__}" for call in (crash, keep)]
    report.reporters.cache_clear()
    failures.clear()
    yield
    report.reporters.cache_clear()


def test_a_failed_attempt_is_reported_with_event_job_and_handler(scripted, reporters) -> None:
    scripted("test.work", raising(ValueError("no")))
    id = enqueue(Working)
    drain("test.work")
    (failure,) = failures
    assert (failure.handler, failure.job_id, failure.attempt) == ("test.work", id, 1)
    assert (failure.final, failure.error_class) == (False, "builtins.ValueError")
    assert failure.retry_in > 0
    assert "payload" not in json.dumps(list(failure.__dataclass_fields__))


def look(failure: report.Failure) -> None:
    states.append(Job.objects.get(id=failure.job_id).state)


states: list[str] = []


def test_a_reporter_finds_the_attempt_settled(scripted, settings) -> None:
    """So one that hangs keeps no job running."""
    settings.JOBS_ERROR_REPORTERS = [f"{__name__}.look"]
    report.reporters.cache_clear()
    states.clear()
    scripted("test.work", raising(Permanent("no")))
    enqueue(Working)
    drain("test.work")
    report.reporters.cache_clear()
    assert states == ["failed"]
