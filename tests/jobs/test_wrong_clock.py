"""A process whose clock is wrong decides as others do: by the clock of the database."""

import json
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tailrace.jobs.engine.drain import drain
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job, QueueActivity, Schedule, Slot
from tests.kit import ROOT
from tests.sandbox.handlers import Working

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("faketime") is None, reason="needs faketime"),
]

BEGIN = """
import json, sys, django
django.setup()
from datetime import datetime, timedelta, UTC
from django.conf import settings
settings.JOBS_WAKE = "inline"
"""


def elsewhere(env: dict[str, str], shift: str, code: str) -> Any:
    """Run this code in a process whose clock is wrong by `shift`; return the JSON it prints."""
    done = subprocess.run(
        ["faketime", "-f", shift, sys.executable, "-c", BEGIN + code],
        cwd=ROOT, env=env, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


RUN_DUE = """
from tailrace.jobs.engine.maintenance.ticking import schedules
print(json.dumps(schedules.run_due()))
"""


def every_ten_minutes(**fields: object) -> Schedule:
    now = datetime.now(UTC)
    fields = {"next_run_at": now, "every_seconds": 600, "handler": "test.work"} | fields
    return Schedule.objects.create(name="often", **fields)


def test_a_process_ahead_runs_only_the_slots_that_are_due(process_env) -> None:
    schedule = every_ten_minutes()
    assert elsewhere(process_env, "+3000s", RUN_DUE) == 1
    assert [slot.outcome for slot in Slot.objects.all()] == ["ran"]
    schedule.refresh_from_db()
    assert schedule.next_run_at < datetime.now(UTC) + timedelta(minutes=20)
    assert elsewhere(process_env, "+3000s", RUN_DUE) == 0


def test_a_process_behind_runs_the_slots_that_are_due(process_env) -> None:
    first = datetime.now(UTC) - timedelta(seconds=1500)
    every_ten_minutes(next_run_at=first, catch_up=Schedule.CatchUp.ALL)
    assert elsewhere(process_env, "-3000s", RUN_DUE) == 1
    assert Slot.objects.filter(outcome="ran").count() == 3


def test_a_daily_slot_on_time_is_not_missed(process_env) -> None:
    every_ten_minutes(every_seconds=86_400, catch_up=Schedule.CatchUp.SKIP)
    now = """
from tailrace.db.query import database_now
from tailrace.jobs.models import Schedule
Schedule.objects.update(next_run_at=database_now())
"""
    assert elsewhere(process_env, "+90s", now + RUN_DUE) == 1
    assert [slot.outcome for slot in Slot.objects.all()] == ["ran"]


@pytest.mark.parametrize("shift", ["+3000s", "-3000s"])
def test_enqueue_wakes_a_queue_for_what_is_due(process_env, shift) -> None:
    code = f"""
from tailrace.jobs.enqueue import enqueue
enqueue("test.work", due_at=datetime.fromisoformat({datetime.now(UTC).isoformat()!r}))
later = timedelta(minutes=10)
enqueue("test.other", due_at=datetime.fromisoformat({datetime.now(UTC).isoformat()!r}) + later)
print("null")
"""
    elsewhere(process_env, shift, code)
    awake = dict(QueueActivity.objects.values_list("name", "awake"))
    assert (awake["test.work"], awake["test.other"]) == (True, False)


@pytest.mark.parametrize("shift", ["+3000s", "-3000s"])
def test_a_snooze_until_a_time_ends_at_that_time(process_env, shift) -> None:
    until = datetime.now(UTC) + timedelta(hours=1)
    job = enqueue(Working)
    code = f"""
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.handler import Snooze
from tests.sandbox import handlers
def snooze(job):
    raise Snooze("later", until=datetime.fromisoformat({until.isoformat()!r}))
handlers.script["test.work"] = snooze
print(json.dumps(drain("test.work")))
"""
    assert elsewhere(process_env, shift, code) == 1
    assert Job.objects.get(pk=job).due_at == until
    assert drain("test.work") == 0
