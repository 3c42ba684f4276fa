"""Calls in flight in this process: outcomes, context, limits, and harm that stays with one job."""

import asyncio
import sys
import threading
import time

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections, transaction
from django.db.models import Sum

from tailrace.db.connections import ENGINE
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, apublish, publish
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.handler import Cancel, Permanent, Retry, Skip, Snooze
from tailrace.jobs.models import Attempt, Job, Throughput
from tests.jobs.engine.in_flight.conftest import all_in
from tests.kit import wait_until
from tests.sandbox.event_types import Happened, Whispered
from tests.sandbox.handlers import Log, Waiting
from tests.sandbox.models import Effect

pytestmark = pytest.mark.django_db(transaction=True)

NAME = Waiting.name
DONE = all_in("completed", "skipped", "cancelled", "failed", "pending")


def test_a_hundred_calls_wait_at_once(ring, scripted) -> None:
    together = asyncio.Event()
    running = []

    async def wait_for_all(job):
        running.append(job.id)
        if len(running) == 100:
            together.set()
        await together.wait()

    scripted(NAME, wait_for_all)
    enqueue_many(Waiting, [{}] * 150)
    ring(NAME)
    wait_until(all_in("completed"))
    assert len(running) == 150 == len(set(running))
    counted = Throughput.objects.filter(queue=NAME)
    wait_until(lambda: counted.aggregate(sum=Sum("completed"))["sum"] == 150)


OUTCOMES = {
    "completed": lambda: None,
    "skipped": lambda: Skip("nothing to do"),
    "cancelled": lambda: Cancel("not needed"),
    "failed": lambda: Permanent("never"),
    "pending": lambda: Retry("later", after=60),
}


@pytest.mark.parametrize("state", OUTCOMES)
def test_outcomes_are_those_of_a_plain_handler(state: str, ring, scripted) -> None:
    async def end(job):
        await asyncio.sleep(0)
        if outcome := OUTCOMES[state]():
            raise outcome
        return {"answer": 42}

    scripted(NAME, end)
    id = enqueue(Waiting)
    ring(NAME)
    wait_until(lambda: Job.objects.filter(pk=id, claim_no=1).exclude(state="running").exists())
    job = Job.objects.get(pk=id)
    assert (job.state, job.attempt) == (state, 1)
    assert job.result == ({"answer": 42} if state == "completed" else None)


def test_a_snooze_is_not_charged(ring, scripted) -> None:
    async def snooze(job):
        raise Snooze("not now", seconds=60)

    scripted(NAME, snooze)
    id = enqueue(Waiting)
    ring(NAME)
    wait_until(lambda: Attempt.objects.filter(job=id, outcome="snoozed").exists())
    job = Job.objects.get(pk=id)
    assert (job.state, job.attempt) == ("pending", 0)


async def raise_error() -> None:
    raise RuntimeError("broken")


async def cancel_own_task() -> None:
    asyncio.current_task().cancel()
    await asyncio.sleep(1)


async def exit_process() -> None:
    sys.exit(3)


async def exit_in_a_child_task() -> None:
    await asyncio.create_task(exit_process())


async def use_the_database_in_the_loop() -> None:
    connection.cursor()


async def leave_a_transaction_open() -> None:
    await sync_to_async(lambda: connection.cursor().execute("BEGIN"))()


async def cut_the_connection() -> None:
    def cut() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    await sync_to_async(cut)()


BAD = [
    raise_error, cancel_own_task, exit_process, exit_in_a_child_task, use_the_database_in_the_loop,
    leave_a_transaction_open, cut_the_connection,
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.__name__)
def test_what_one_call_does_harms_no_other(bad, ring, scripted) -> None:
    reads = []

    async def work(job):
        if job.payload.note == "bad":
            await bad()
            return
        await asyncio.sleep(0.05)
        reads.append(await Event.objects.acount())
        await asyncio.sleep(0.05)
        reads.append(await Event.objects.acount())

    scripted(NAME, work)
    others = [{"payload": {}}] * 10
    enqueue_many(Waiting, [*others, {"payload": {"note": "bad"}}, *others])
    ring(NAME)
    wait_until(lambda: not Job.objects.running().exists() and Attempt.objects.exists())
    wait_until(lambda: Job.objects.filter(state="completed").count() == 20)
    enqueue_many(Waiting, others)
    ring(NAME)
    wait_until(lambda: Job.objects.filter(state="completed").count() == 30)
    assert len(reads) == 60
    (attempt,) = Attempt.objects.all()
    assert attempt.outcome == ("failed" if bad is leave_a_transaction_open else "retried")
    if bad is leave_a_transaction_open:
        assert "left a transaction open" in attempt.message


def test_events_published_inside_have_their_cause(ring, scripted) -> None:
    async def publish_more(job):
        await asyncio.sleep(0.01 * (job.id % 5))
        await apublish(NewEvent(Whispered, subject=str(job.event.id)))

    scripted(Log.name, lambda job: None)
    causes = publish([NewEvent(Happened, {"who": "w"}, trace_parent=f"00-{n}") for n in range(20)])
    scripted(NAME, publish_more)
    Job.objects.filter(handler=Log.name).update(handler=NAME)
    ring(NAME)
    whispers = Event.objects.filter(type=Whispered.name)
    wait_until(lambda: whispers.count() == 20)
    rows = {(str(cause.id), cause.id, cause.trace_parent) for cause in causes}
    assert set(whispers.values_list("subject", "cause_id", "trace_parent")) == rows


def test_progress_and_cancelling_are_awaited(ring, scripted) -> None:
    steps = []

    async def go_on(job):
        while True:
            await job.aprogress(len(steps), 100, "on")
            steps.append(await sync_to_async(lambda: connection.alias)())
            await job.acheck_cancelled()
            await asyncio.sleep(0.01)

    scripted(NAME, go_on)
    id = enqueue(Waiting)
    ring(NAME)
    wait_until(lambda: Job.objects.get(pk=id).progress_note == "on")
    Job.objects.filter(pk=id).update(cancel_requested=True)
    wait_until(all_in("cancelled"))
    assert set(steps) == {"default"}


def test_connections_of_calls_are_few(ring, scripted) -> None:
    seen = set()

    def look() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid(), pg_sleep(0.01)")
            seen.add((threading.get_ident(), cursor.fetchone()[0]))
        assert connections[ENGINE].connection is None

    scripted(NAME, lambda job: sync_to_async(look)())
    enqueue_many(Waiting, [{}] * 100)
    ring(NAME)
    wait_until(all_in("completed"))
    assert 2 <= len(seen) <= 4


def test_a_stale_connection_is_not_the_next_jobs(ring) -> None:
    for _ in range(3):
        enqueue_many(Waiting, [{}] * 8)
        ring(NAME)
        wait_until(all_in("completed"))
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                " AND backend_type = 'client backend'"
            )
    assert Effect.objects.count() == 24
    assert not Attempt.objects.exists()


def test_atomic_blocks_of_calls_do_not_mix(ring, scripted) -> None:
    @transaction.atomic
    def write(job) -> None:
        Effect.objects.create(handler=NAME, job_id=job.id, claim_no=1, note="", process=0)
        time.sleep(0.005)
        if job.id % 2:
            raise RuntimeError("rolled back")

    scripted(NAME, lambda job: sync_to_async(write)(job))
    enqueue_many(Waiting, [{}] * 40)
    ring(NAME)
    wait_until(lambda: not Job.objects.running().exists() and Attempt.objects.count() == 20)
    wait_until(lambda: Job.objects.filter(state="completed").count() == 20)
    assert {id % 2 for id in Effect.objects.values_list("job_id", flat=True)} == {0}
    assert Effect.objects.count() == 20
