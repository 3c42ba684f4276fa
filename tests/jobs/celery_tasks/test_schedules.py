"""Schedules move from beat, each slot is one job, and they move back."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from celery import beat, current_app
from celery.result import AsyncResult
from celery.schedules import crontab
from celery.signals import after_task_publish, beat_init, before_task_publish
from django.core.management import CommandError, call_command
from django.db import connection
from django_celery_beat import models as rows
from django_celery_beat.schedulers import DatabaseScheduler

from tailrace.jobs.engine.maintenance.ticking import schedules as ticking
from tailrace.jobs.frameworks.celery_tasks.schedules import leave_out_moved
from tailrace.jobs.models import CeleryTask, Job, Schedule
from tests.sandbox import durable
from tests.sandbox.models import Effect

pytestmark = pytest.mark.django_db(transaction=True)

NIGHTLY = {
    "task": durable.add.name,
    "schedule": crontab(minute=30, hour=2),
    "args": (1,),
    "kwargs": {"b": 2},
    "options": {"queue": "media", "expires": 3600, "headers": {"tenant": "t1"}},
}


@pytest.fixture(autouse=True)
def in_berlin(configured) -> None:
    configured(timezone="Europe/Berlin", beat_schedule={})


def adopt(*options: str) -> str:
    """Run the command; return what it prints."""
    out = StringIO()
    with suppress(SystemExit):  # the report names tasks of the tests that cannot move
        call_command("tailrace", "adopt", *options, stdout=out)
    return out.getvalue()


def names_in(scheduler: type[beat.Scheduler]) -> set[str]:
    """Return what this scheduler of a beat that starts sends, without Celery's own."""
    service = beat.Service(current_app, scheduler_cls=scheduler)
    leave_out_moved(service)
    return {name for name in service.scheduler.schedule if not name.startswith("celery.")}


def hourly(**fields: Any) -> rows.PeriodicTask:
    interval = rows.IntervalSchedule.objects.create(every=1, period="hours")
    given = {"name": "hourly", "task": durable.add.name, "interval": interval, "args": "[5]"}
    return rows.PeriodicTask.objects.create(**given | fields)


def test_an_entry_becomes_a_schedule_that_beat_leaves_out(configured) -> None:
    configured(beat_schedule={"nightly": NIGHTLY})
    assert names_in(beat.Scheduler) == {"nightly"}
    assert adopt("--move-schedules") == "1 moved, 0 stay in beat\n  nightly: moved\n"
    schedule = Schedule.objects.get(name="nightly")
    assert (schedule.cron, schedule.time_zone) == ("30 2 * * *", "Europe/Berlin")
    assert schedule.handler == f"{durable.add.name}@media"
    assert names_in(beat.Scheduler) == set()
    assert names_in(DatabaseScheduler) == set()
    assert names_in(DatabaseScheduler) == set(), "also when it starts again"
    assert "nightly" in adopt("--no-workers")
    assert "it has moved, and beat leaves it out" in adopt("--no-workers")


def test_each_beat_that_starts_leaves_them_out() -> None:
    assert leave_out_moved in [receive() for _key, receive in beat_init.receivers]


def test_a_slot_is_one_job_with_an_id_of_its_own(configured, run_jobs, do) -> None:
    requests: list[Any] = []

    def note_request(task: Any, *args: Any, **kwargs: Any) -> str:
        requests.append(task.request)
        if task.request.retries == 0:
            raise task.retry(countdown=0)
        return "done"

    entry = {**NIGHTLY, "task": durable.scripted.name, "schedule": 60}
    configured(beat_schedule={"often": entry})
    do(note_request, note_request)
    adopt("--move-schedules")
    ticking.run_due()
    ticking.run_due()  # as a second beat does
    job = Job.objects.get()
    assert job.schedule is not None
    assert job.payload["id"] == ""
    run_jobs()
    first, second = requests
    assert first.id == second.id == first.root_id
    assert (list(first.args), dict(first.kwargs)) == ([1], {"b": 2})
    assert first.headers["tenant"] == "t1" if first.headers else first.tenant == "t1"
    assert first.properties["periodic_task_name"] == "often"
    assert AsyncResult(first.id).get(timeout=1) == "done"


def test_its_publication_is_announced_when_it_begins(configured, run_jobs, do, received) -> None:
    """A project may keep a table of its tasks, whose rows the signal creates."""
    events = received(before_task_publish, after_task_publish)
    requests: list[Any] = []
    entry = {**NIGHTLY, "task": durable.scripted.name, "schedule": 60}
    configured(beat_schedule={"often": entry})
    do(lambda task, *args, **kwargs: requests.append(task.request.headers))
    adopt("--move-schedules")
    assert events == [], "nothing was published yet"
    before_task_publish.connect(add_header)
    try:
        ticking.run_due()
        run_jobs()
    finally:
        before_task_publish.disconnect(add_header)
    [before, after] = events
    job = Job.objects.get()
    assert before[1] == after[1] == durable.scripted.name
    assert before[2]["headers"]["id"] == CeleryTask.objects.get(job_id=job.pk).task_id
    assert (before[2]["headers"]["tenant"], before[2]["routing_key"]) == ("t1", "media")
    assert before[2]["body"][:2] == ([1], {"b": 2})
    assert requests == [{"tenant": "t1", "added": "by a receiver"}]


def add_header(headers: dict[str, Any], **kwargs: Any) -> None:
    headers["added"] = "by a receiver"


def test_a_job_that_begins_after_its_expiry_does_not_run(configured, run_jobs, clock) -> None:
    configured(beat_schedule={"often": {**NIGHTLY, "schedule": 7200}})
    adopt("--move-schedules")
    ticking.run_due()
    clock.step(3601)
    run_jobs()
    assert Job.objects.get().state == "cancelled"
    assert not Effect.objects.exists()


def test_a_row_is_disabled_and_its_interval_goes_on_from_its_last_time(run_jobs) -> None:
    last = datetime.now(UTC) - timedelta(minutes=20)
    row = hourly(last_run_at=last)
    assert names_in(DatabaseScheduler) == {"hourly"}
    adopt("--move-schedules")
    row.refresh_from_db()
    assert not row.enabled
    assert names_in(DatabaseScheduler) == set()
    assert Schedule.objects.get(name="hourly").next_run_at == last + timedelta(hours=1)


def test_the_first_slot_of_a_row_is_not_before_its_start() -> None:
    start = datetime.now(UTC) + timedelta(days=2)
    hourly(start_time=start)
    adopt("--move-schedules")
    assert Schedule.objects.get(name="hourly").next_run_at == start


def test_all_of_them_move_back(configured, run_jobs) -> None:
    configured(beat_schedule={"nightly": NIGHTLY, "often": {**NIGHTLY, "schedule": 60}})
    row = hourly()
    adopt("--move-schedules")
    ticking.run_due()
    assert adopt("--move-schedules-back") == "3 moved back to beat\nhourly\nnightly\noften\n"
    row.refresh_from_db()
    assert row.enabled
    assert names_in(beat.Scheduler) == {"nightly", "often"}
    assert not Schedule.objects.filter(name__in=["hourly", "nightly", "often"]).exists()
    assert set(Job.objects.values_list("state", flat=True)) == {"cancelled"}
    assert adopt("--move-schedules-back") == "0 moved back to beat\n"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"options": {"expires": datetime(2030, 1, 1, tzinfo=UTC)}}, "it expires at a time"),
        ({"options": {"countdown": 5}}, "it has the option 'countdown'"),
        ({"options": {"link": durable.add.s(1)}}, "it has the option 'link'"),
        ({"args": ({1, 2},)}, "argument 1 (of type builtins.set) is not JSON"),
    ],
)
def test_what_cannot_move_is_named_and_stays(configured, changed: dict, why: str) -> None:
    configured(beat_schedule={"mine": {**NIGHTLY, **changed}, "nightly": NIGHTLY})
    printed = adopt("--move-schedules")
    assert printed.startswith("1 moved, 1 stay in beat\n")
    assert "  nightly: moved\n" in printed
    assert why in printed
    assert Schedule.objects.filter(name__in=["mine", "nightly"]).get().name == "nightly"
    assert names_in(beat.Scheduler) == {"mine"}


@pytest.mark.parametrize("owner", ["code", "ann"])
def test_a_schedule_of_somebody_else_with_that_name_stays_as_it_is(configured, owner) -> None:
    Schedule.objects.create(name="taken", handler="test.work", cron="0 0 * * *", owner=owner)
    configured(beat_schedule={"taken": NIGHTLY, "nightly": NIGHTLY})
    assert "  taken: another schedule has this name" in adopt("--move-schedules")
    assert names_in(beat.Scheduler) == {"taken"}
    assert adopt("--move-schedules-back") == "1 moved back to beat\nnightly\n"
    kept = Schedule.objects.get(name="taken")
    assert (kept.handler, kept.owner) == ("test.work", owner)


def test_if_one_schedule_is_invalid_none_moves(configured) -> None:
    configured(beat_schedule={"n" * 601: NIGHTLY, "nightly": NIGHTLY})
    row = hourly()
    with pytest.raises(CommandError, match=r"no schedule was moved: .*601 characters"):
        adopt("--move-schedules")
    row.refresh_from_db()
    assert row.enabled
    assert not Schedule.objects.filter(name__in=["nightly", "hourly"]).exists()


def test_a_beat_that_cannot_read_what_has_moved_ends(configured) -> None:
    configured(beat_schedule={"nightly": NIGHTLY})
    service = beat.Service(current_app, scheduler_cls=beat.Scheduler)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tailrace_jobs_schedule RENAME TO elsewhere")
    try:
        with pytest.raises(SystemExit, match=r"cannot read which schedules have moved: .*relation"):
            leave_out_moved(service)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE elsewhere RENAME TO tailrace_jobs_schedule")


def test_a_beat_without_durable_tasks_reads_nothing(configured, django_assert_num_queries) -> None:
    configured(beat_schedule={"plain": {"task": "some.plain_task", "schedule": 60}})
    service = beat.Service(current_app, scheduler_cls=beat.Scheduler)
    with django_assert_num_queries(0):
        leave_out_moved(service)
    assert "plain" in service.scheduler.schedule


def test_eager_tasks_are_not_run_by_the_move(configured: Callable[..., None]) -> None:
    configured(beat_schedule={"nightly": NIGHTLY}, task_always_eager=True)
    assert "task_always_eager" in adopt("--move-schedules")
    assert not Effect.objects.exists()
