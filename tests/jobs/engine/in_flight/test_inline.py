"""A drain of an async queue in the calling thread, as tests and commands need it."""

import asyncio

import pytest
from django.db import connection

from tailrace.db.query import query
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, apublish
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.handler import Skip
from tailrace.jobs.models import Job
from tests.sandbox.event_types import Whispered
from tests.sandbox.handlers import Waiting, WaitingByKey, WaitingShortly

pytestmark = pytest.mark.django_db


def test_it_runs_what_is_due_together_in_one_transaction(scripted) -> None:
    """The database of this test is its own transaction: all is done on this thread's connection."""
    running, most = [], []

    async def work(job):
        running.append(job.id)
        most.append(len(running))
        await asyncio.sleep(0.01)
        await apublish(NewEvent(Whispered, subject=str(job.id)))
        await job.aprogress(1)
        running.remove(job.id)
        if job.payload.note:
            raise Skip(job.payload.note)

    scripted(Waiting.name, work)
    enqueue_many(Waiting, [{}] * 20)
    skipped = enqueue(Waiting, {"note": "no"})
    assert drain(Waiting.name) == 21
    assert max(most) == 21
    assert Job.objects.filter(state="completed", progress_done=1).count() == 20
    assert Job.objects.get(pk=skipped).error == "no"
    assert Event.objects.count() == 21
    assert connection.in_atomic_block
    assert query("SELECT 1") == [(1,)]


def test_it_holds_time_limits_and_places(scripted) -> None:
    enqueue(WaitingShortly, {"do": "sleep", "seconds": 60})
    drain(WaitingShortly.name)
    assert "time limit" in Job.objects.get().error
    running, most = [], []

    async def work(job):
        running.append(job.id)
        most.append(len(running))
        await asyncio.sleep(0.001)
        running.remove(job.id)

    scripted(WaitingByKey.name, work)
    enqueue_many(WaitingByKey, [{"routing_key": "a"}] * 15)
    assert drain(WaitingByKey.name) == 15
    assert max(most) == 3
