"""Beat and a database that is away for a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from celery import current_app
from django.db import connection
from django_celery_beat.models import IntervalSchedule, PeriodicTask
from django_celery_beat.schedulers import SCHEDULE_SYNC_MAX_INTERVAL

from tailrace.config.servers.beat_scheduler import Scheduler

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def task() -> PeriodicTask:
    hourly = IntervalSchedule.objects.create(every=1, period="hours")
    return PeriodicTask.objects.create(name="report", task="shop.report", interval=hourly)


@contextmanager
def database_away(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the server refuse each connection of this process."""
    with monkeypatch.context() as patch:
        connection.close()
        patch.setitem(connection.settings_dict, "NAME", "no_such_database")
        yield
        connection.close()


def let_the_next_look_read_all(scheduler: Scheduler) -> None:
    scheduler._last_full_sync -= timedelta(seconds=SCHEDULE_SYNC_MAX_INTERVAL)


def test_it_continues_with_the_schedule_that_it_has(monkeypatch, task) -> None:
    scheduler = Scheduler(app=current_app)
    let_the_next_look_read_all(scheduler)
    with database_away(monkeypatch):
        assert "report" in scheduler.schedule
        assert scheduler.tick() >= 0
    PeriodicTask.objects.all().update(enabled=False)
    assert "report" not in scheduler.schedule, "it reads the schedule again at once"


def test_it_starts_without_a_database_and_reads_the_schedule_later(monkeypatch) -> None:
    with database_away(monkeypatch):
        scheduler = Scheduler(app=current_app)
        assert scheduler.schedule == {}
        assert scheduler.tick() >= 0
    assert "report" in scheduler.schedule
