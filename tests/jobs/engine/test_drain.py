"""How a drain begins, and how long a queue keeps a worker that it shares with others."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from tailrace.db import clock
from tailrace.db.connections import ENGINE
from tailrace.jobs.engine.claiming import pace
from tailrace.jobs.engine.claiming.claim import Batch, begin_and_claim
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.models import Job, Queue, QueueActivity
from tests.kit import broker_length, claimed, empty_broker
from tests.sandbox.handlers import Working

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize(("waits", "settled"), [(True, 10), (False, 25)])
def test_a_drain_hands_over_early_where_another_queue_waits(
    monkeypatch: pytest.MonkeyPatch, ten_to_a_claim: None, waits: bool, settled: int
) -> None:
    monkeypatch.setattr("tailrace.jobs.engine.drain.TURN_SECONDS", 0)
    empty_broker()
    enqueue_many(Working, [{}] * 25)
    empty_broker()
    QueueActivity.objects.filter(name="test.other").update(awake=waits, awake_at=clock.now())
    assert drain("test.work") == settled
    assert broker_length("test.work") == 1
    assert QueueActivity.objects.get(name="test.work").awake


def test_a_queue_without_workers_makes_no_drain_hand_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailrace.jobs.engine.drain.TURN_SECONDS", 0)
    enqueue_many(Working, [{}] * 25)
    long_ago = clock.now() - timedelta(seconds=30)
    QueueActivity.objects.filter(name="test.other").update(awake=True, awake_at=long_ago)
    assert drain("test.work") == 25


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of Working have been quick in this process."""
    monkeypatch.setitem(pace._seconds, Working.name, 0.001)


def test_a_drain_of_a_quick_handler_begins_and_claims_in_one_statement(quick: None) -> None:
    enqueue(Working)
    with CaptureQueriesContext(connections[ENGINE]) as captured:
        assert drain(Working.name) == 1
    first, *others = [each["sql"] for each in captured]
    assert "begun AS" in first
    assert "UPDATE tailrace_jobs_live" in first
    assert not [sql for sql in others if "queueactivity a" in sql], "it begins once"
    assert len([sql for sql in others if "candidate AS" in sql]) == 1, "then it finds no job"
    assert not QueueActivity.objects.get(name=Working.name).awake


def test_a_job_that_the_first_claim_could_not_see_is_claimed_by_the_next(
    quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its publisher sends no message, since it saw the queue awake."""
    first, late = enqueue(Working), list[int]()

    def claim_then_publish(*args: Any) -> Batch:
        jobs = begin_and_claim(*args)
        late.extend([] if late else [enqueue(Working)])
        empty_broker()
        return jobs

    monkeypatch.setattr("tailrace.jobs.engine.drain.begin_and_claim", claim_then_publish)
    assert drain(Working.name) == 2
    assert {Job.objects.get(pk=id).state for id in (first, *late)} == {"completed"}


@pytest.mark.parametrize(
    ("limits", "settled"),
    [({"max_running": 1}, 0), ({"rate_limit": 2}, 2), ({"paused_at": LONG_AGO}, 0)],
    ids=["running", "rate", "paused"],
)
def test_a_drain_of_a_quick_handler_keeps_the_limits_of_its_queue(
    quick: None, limits: dict[str, Any], settled: int
) -> None:
    enqueue_many(Working, [{}] * 4)
    if "max_running" in limits:
        claimed(Working.name, 1)
    Queue.objects.filter(pk=Working.name).update(**limits)
    assert drain(Working.name) == settled
    assert not QueueActivity.objects.get(name=Working.name).awake


def test_slow_calls_and_unknown_ones_begin_without_a_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that the statement has not seen would wait for the end of a slow call."""
    monkeypatch.delitem(pace._seconds, Working.name, raising=False)
    assert not pace.is_quick(Working())
    monkeypatch.setitem(pace._seconds, Working.name, 0.5)
    assert not pace.is_quick(Working())
