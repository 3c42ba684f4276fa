"""Calls to a destination that hang are named while other jobs wait for them."""

from datetime import timedelta
from typing import Any

import pytest

from tailrace.db import clock
from tailrace.jobs.engine.counters import totals
from tailrace.jobs.handler import Handler
from tailrace.jobs.models import Job, Total
from tailrace.jobs.platform.inspection import verdict
from tailrace.jobs.platform.inspection.explain.explanation import explain
from tailrace.jobs.platform.inspection.verdict.cause import Cause
from tests.jobs import operators

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("system")]
X = "https://slow.example.org"


class Send(Handler):
    """Send a letter."""

    name = "operators.send"
    concurrency = 100
    per_destination = 4

    async def handle(self, job: Any) -> None:
        return None


def calls(seconds: float, number: int = 4, **fields: Any) -> None:
    for _ in range(number):
        job = operators.runs(101, seconds, routing_key=X)
        Job.objects.filter(pk=job.pk).update(handler=Send.name, **fields)


def waiting(number: int, **fields: Any) -> list[int]:
    """Create jobs that were put off: they are due in a minute."""
    due = clock.now() + timedelta(minutes=1)
    error = f"calls to {X!r} in flight in this process have reached the limit of 4"
    row = {"handler": Send.name, "due_at": due, "error": error, "routing_key": X, "claim_no": 3}
    return [Job.objects.create(state="pending", **row | fields).pk for _ in range(number)]


def usual(seconds: float) -> None:
    numbers = totals.observation(seconds)
    Total.objects.create(
        metric=totals.RUN, name=Send.name, numbers=[100 * number for number in numbers]
    )


def hanging() -> list[Cause]:
    return [cause for cause in verdict.work_out().causes if cause.code == "calls_hang"]


def test_calls_that_run_far_longer_than_usual_are_named() -> None:
    usual(0.1)
    calls(120)
    waiting(26)
    [cause] = hanging()
    assert cause.words == (
        f"Calls of {Send.name} to a destination hang: 4 calls have run for 2 min (usually calls"
        " take up to 100 ms), and 26 jobs wait for them."
    )
    assert cause.private == f"The destination is {X}."
    assert verdict.work_out().codes == ["calls_hang"]


def test_they_are_named_after_ten_seconds() -> None:
    usual(0.1)
    calls(8)
    waiting(1)
    assert hanging() == []
    calls(11, 1)
    assert "1 call has run for 11 s" in hanging()[0].words
    assert "1 job waits for them" in hanging()[0].words


def test_calls_that_are_always_slow_do_not_hang() -> None:
    usual(30)
    calls(120)
    waiting(26)
    assert hanging() == []


def test_without_an_ended_call_they_are_given_longer() -> None:
    calls(20)
    waiting(2)
    assert hanging() == []
    calls(31, 1)
    assert "no call has ended yet" in hanging()[0].words


def test_calls_that_nothing_waits_for_do_no_harm() -> None:
    usual(0.1)
    calls(120)
    waiting(3, error="", due_at=clock.now() + timedelta(days=1))
    waiting(3, routing_key="https://other.example.org")
    assert hanging() == []
    waiting(1, error="", due_at=clock.now())
    assert len(hanging()) == 1


def test_a_job_that_waits_is_explained_by_the_calls() -> None:
    usual(0.1)
    calls(120)
    [waits] = waiting(1)
    why = explain(waits)
    assert why.summary.startswith("Not now: ")
    assert "Calls that it waits for hang: 4 calls have run for 2 min" in why.summary
    [other] = waiting(1, routing_key="https://other.example.org")
    assert "hang" not in explain(other).summary
