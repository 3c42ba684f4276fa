"""The engine thread of async handlers goes on after any error."""

import asyncio
import ctypes
import threading
from collections import Counter

import pytest
from django.db import connection

from tailrace.jobs.engine.in_flight import engine, leases
from tailrace.jobs.engine.maintenance.ticking import rescue
from tailrace.jobs.enqueue import enqueue_many
from tailrace.jobs.models import Job, Pulse
from tailrace.jobs.runtime import thread_failures
from tests.jobs.engine.in_flight.conftest import all_in
from tests.kit import PATIENCE, wait_until
from tests.sandbox.handlers import Waiting

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_engine_thread_outlives_what_is_raised_in_it(ring, scripted, caplog) -> None:
    running, finish = threading.Event(), threading.Event()

    async def call(job):
        running.set()
        while not finish.is_set():
            await asyncio.sleep(0.01)

    scripted(Waiting.name, call)
    enqueue_many(Waiting, [{}] * 3)
    ring(Waiting.name)
    assert running.wait(PATIENCE)
    [engine] = [each for each in threading.enumerate() if each.name == "in-flight-engine"]
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(engine.ident), ctypes.py_object(SystemExit)
    )
    wait_until(lambda: "'event': 'thread.failed'" in caplog.text)
    finish.set()
    wait_until(lambda: ring(Waiting.name) or all_in("completed")())
    assert engine.is_alive()


def cut_all_connections() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )


def test_connections_that_are_cut_cost_time_only(ring, scripted) -> None:
    """Each job is called once. One that was claimed ahead may have been given back meanwhile."""
    calls = Counter()

    async def wait(job):
        calls[job.id] += 1
        await asyncio.sleep(0.05)

    scripted(Waiting.name, wait)
    enqueue_many(Waiting, [{}] * 2000)
    ring(Waiting.name)
    for done in (50, 300, 600, 900):
        wait_until(lambda done=done: Job.objects.filter(state="completed").count() >= done)
        cut_all_connections()
    wait_until(lambda: ring(Waiting.name) or all_in("completed")())
    assert set(calls.values()) == {1}
    assert len(calls) == 2000
    assert set(Job.objects.values_list("attempt", flat=True)) == {1}


def test_a_missing_setting_leaves_no_job_running(ring, scripted, settings, monkeypatch) -> None:
    """The jobs go back to their queue until the setting is there."""
    monkeypatch.setattr(thread_failures, "_next_at", {})
    limit = settings.JOBS_ASYNC_TIME_LIMIT
    del settings.JOBS_ASYNC_TIME_LIMIT

    async def call(job):
        return None

    scripted(Waiting.name, call)
    enqueue_many(Waiting, [{}] * 3)
    ring(Waiting.name)
    wait_until(lambda: Pulse.objects.filter(name__startswith="thread:"), what="the record")
    wait_until(lambda: not Job.objects.running().exists())
    settings.JOBS_ASYNC_TIME_LIMIT = limit
    wait_until(lambda: ring(Waiting.name) or all_in("completed")())
    assert set(Job.objects.values_list("attempt", flat=True)) == {1}


def test_leases_of_calls_that_nobody_settles_are_not_renewed(ring, scripted, monkeypatch) -> None:
    """Else a job would be running for good if each round of the engine thread fails."""
    monkeypatch.setattr(Waiting, "claim_timeout", 3)
    monkeypatch.setattr(leases, "UNWATCHED_SECONDS", 1)
    monkeypatch.setattr(thread_failures, "SHORTEST_PAUSE", 0.05)
    monkeypatch.setattr(thread_failures, "LONGEST_PAUSE", 0.05)
    finish = threading.Event()

    async def call(job):
        while not finish.is_set():
            await asyncio.sleep(0.01)

    scripted(Waiting.name, call)
    enqueue_many(Waiting, [{}])
    ring(Waiting.name)
    wait_until(lambda: Job.objects.running().exists())
    with monkeypatch.context() as broken:

        def fail(self: object, now: float) -> None:
            raise LookupError("each round fails")

        broken.setattr(engine.InFlight, "_round", fail)
        wait_until(lambda: rescue.rescue() == 1, what="the lease expires")
        finish.set()
    wait_until(lambda: ring(Waiting.name) or all_in("completed")())
