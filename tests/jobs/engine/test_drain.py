"""How long a queue keeps a worker that it shares with others."""

from datetime import timedelta

import pytest

from tailrace.db import clock
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.enqueue import enqueue_many
from tailrace.jobs.models import QueueActivity
from tests.kit import broker_length, empty_broker
from tests.sandbox.handlers import Working

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
