"""The engine thread of async handlers goes on after any error."""

import asyncio
import ctypes
import threading

import pytest
import structlog

from tailrace.jobs.enqueue import enqueue_many
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
