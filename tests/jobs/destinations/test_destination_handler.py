"""What is sent to destinations: breakers, rate limits and outcomes, whatever a message does."""

from collections import Counter
from collections.abc import Awaitable, Callable

import pytest
from django.db import transaction

from tailrace.jobs.destinations import breaker
from tailrace.jobs.destinations.delivery import SENT, DeliveryResult, DeliveryStatus
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Breaker, Job
from tests.kit import held
from tests.sandbox import handlers
from tests.sandbox.handlers import Sending

pytestmark = pytest.mark.django_db(transaction=True)

QUEUE = Sending.name
AWAY = DeliveryResult(DeliveryStatus.UNAVAILABLE, "connection refused")
Send = Callable[[str], Awaitable[DeliveryResult]]


@pytest.fixture
def sends(monkeypatch: pytest.MonkeyPatch) -> Callable[[Send], None]:
    """Return `sends(call)`: what becomes of each message from now on."""
    return lambda call: monkeypatch.setattr(handlers, "sends", call)


def owe(*messages: str, to: str = "there") -> list[int]:
    return [enqueue(Sending, routing_key=message, lane=to) or 0 for message in messages]


def states(to: str = "there") -> Counter[str]:
    return Counter(Job.objects.filter(lane=to).values_list("state", flat=True))


@pytest.mark.parametrize(
    ("result", "state", "attempt", "error"),
    [
        (SENT, "completed", 1, ""),
        (DeliveryResult(DeliveryStatus.SENT, result={"no": 7}), "completed", 1, ""),
        (DeliveryResult(DeliveryStatus.FAILED, "busy"), "pending", 1, "busy"),
        (DeliveryResult(DeliveryStatus.REJECTED, "never"), "failed", 1, "never"),
        (AWAY, "pending", 1, "connection refused"),
    ],
)
def test_a_result_decides_what_becomes_of_its_job(
    result: DeliveryResult, state: str, attempt: int, error: str, sends, run_jobs
) -> None:
    async def send(message: str) -> DeliveryResult:
        return result

    sends(send)
    owe("hello")
    run_jobs(QUEUE)
    job = Job.objects.get()
    assert (job.state, job.attempt, job.error) == (state, attempt, error)
    assert job.result == result.result


def test_a_bad_message_harms_its_own_job_only(run_jobs) -> None:
    owe("one", "unreadable", "two", "nothing to say", "three")
    run_jobs(QUEUE)
    assert states() == {"completed": 3, "pending": 1, "skipped": 1}
    assert Job.objects.get(state="pending").error == "this one cannot be read"


def test_a_transaction_that_is_left_open_harms_its_own_job_only(run_jobs) -> None:
    owe("one", "leaves a transaction open", "two")
    run_jobs(QUEUE)
    assert states() == {"completed": 2, "failed": 1}
    assert "left a transaction open" in Job.objects.get(state="failed").error
    assert transaction.get_autocommit()


def test_a_destination_that_is_away_harms_no_other(sends, run_jobs) -> None:
    async def send(message: str) -> DeliveryResult:
        return AWAY if message == "x" else SENT

    sends(send)
    owe(*"x" * 12, to="away")
    owe(*"y" * 12, to="here")
    run_jobs(QUEUE)
    assert (states("away"), states("here")) == ({"pending": 12}, {"completed": 12})
    charged = Job.objects.filter(lane="away", attempt=1).count()
    assert charged == Sending.per_destination, "those that were under way"
    assert Breaker.objects.get().name == f"{QUEUE}:away"


def test_one_message_is_tried_and_the_others_follow_it(sends, run_jobs, clock) -> None:
    order: list[str] = []

    async def away(message: str) -> DeliveryResult:
        order.append(message)
        return AWAY

    sends(away)
    owe("first")
    run_jobs(QUEUE)
    owe(*"abcdefgh")
    run_jobs(QUEUE)
    assert order == ["first"], "the breaker is open"
    clock.step(breaker.SHORTEST_SECONDS + 1)
    run_jobs(QUEUE)
    clock.step(3600)
    tried = len(order)
    run_jobs(QUEUE)
    assert len(order) == tried + 1, "one probe, and no other when it fails"

    async def back(message: str) -> DeliveryResult:
        order.append(message)
        return SENT

    sends(back)
    clock.step(3600)
    run_jobs(QUEUE)
    assert states() == {"completed": 9}
    assert not Breaker.objects.exclude(open_until=None).exists()


def test_a_breaker_that_somebody_holds_delays_no_outcome(sends, run_jobs) -> None:
    breaker.record_failure(f"{QUEUE}:there", "once", at_once=False)
    owe(*"abc")
    with held("SELECT 1 FROM tailrace_jobs_breaker FOR UPDATE"):
        run_jobs(QUEUE)
        assert states() == {"completed": 3}


def test_what_was_sent_is_not_sent_again_for_an_error_of_ours(
    monkeypatch: pytest.MonkeyPatch, run_jobs
) -> None:
    def fail(self: Sending, deliveries: object) -> None:
        raise RuntimeError("the log cannot be written")

    monkeypatch.setattr(Sending, "finish", fail)
    owe("hello")
    run_jobs(QUEUE)
    assert states() == {"completed": 1}


def test_a_destination_gets_no_more_than_its_rate(
    monkeypatch: pytest.MonkeyPatch, run_jobs, clock
) -> None:
    monkeypatch.setattr(Sending, "messages_per_second", lambda self: 5.0)
    owe(*"abcdefghij")
    run_jobs(QUEUE)
    assert states() == {"completed": 5, "pending": 5}
    assert set(Job.objects.filter(state="pending").values_list("attempt", flat=True)) == {0}
    clock.step(10)
    run_jobs(QUEUE)
    assert states() == {"completed": 10}
