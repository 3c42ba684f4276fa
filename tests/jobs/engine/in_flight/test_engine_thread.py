"""The engine thread of async handlers goes on after any error."""

import asyncio
import ctypes
import threading
from collections import Counter

import pytest
import structlog
from django.db import connection

from tailrace.jobs.enqueue import enqueue_many
from tailrace.jobs.models import Job
from tests.jobs.engine.in_flight.conftest import all_in
from tests.kit import PATIENCE, wait_until
from tests.sandbox.handlers import Waiting

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_engine_thread_outlives_what_is_raised_in_it(ring, scripted) -> None:
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
    with structlog.testing.capture_logs() as logs:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(engine.ident), ctypes.py_object(SystemExit)
        )
        wait_until(lambda: [entry for entry in logs if entry["event"] == "in_flight.round_failed"])
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
