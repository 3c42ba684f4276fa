"""Replays of jobs that stand for those which a handler could not work out at publish."""

from typing import Any

import pytest
from django.db import connection

from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.models import Job
from tailrace.jobs.operations.replay import replay
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Debounced, Keyed

pytestmark = pytest.mark.django_db


def not_worked_out(handler: Any, **payload: Any) -> Job:
    """Publish while the handler raises; return the failed job."""

    def wants(self: Any, event: Any) -> bool:
        raise ValueError("cannot read it")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(handler, "wants", wants)
        (event,) = publish(NewEvent(Happened, payload))
    job = Job.objects.get(event=event.id, handler=handler.name)
    assert (job.state, job.routing_key) == ("failed", "")
    return job


def rows(job: Job) -> list[tuple[str, str, str]]:
    jobs = Job.objects.filter(event=job.event_id, handler=job.handler).order_by("id")
    return list(jobs.values_list("routing_key", "state", "error"))


def test_a_replay_works_the_routing_keys_out(run_jobs, scripted) -> None:
    job = not_worked_out(Keyed, tags=["a", "b", "a"])
    assert replay([job.pk]).changed == [job.pk]
    assert rows(job) == [("a", "pending", ""), ("b", "pending", "")]
    handled: list[str] = []
    scripted("test.keyed", lambda job: handled.append(job.routing_key))
    run_jobs("test.keyed")
    assert sorted(handled) == ["a", "b"]


def test_what_fails_again_stays_failed_with_the_new_reason(monkeypatch) -> None:
    job = not_worked_out(Keyed, tags=["a"])

    def routing_keys(self: Any, event: Any) -> list[str]:
        raise KeyError("another")

    monkeypatch.setattr(Keyed, "routing_keys", routing_keys)
    reason = "its jobs could not be worked out: KeyError: 'another'"
    result = replay([job.pk])
    assert (result.changed, result.refused) == ([], {job.pk: reason})
    assert rows(job) == [("", "failed", reason)]


def test_a_database_error_leaves_the_others_alone(monkeypatch) -> None:
    jobs = [not_worked_out(Keyed, tags=["a"]), not_worked_out(Debounced, who="w")]

    def routing_keys(self: Any, event: Any) -> list[str]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT * FROM no_such_table")
        return []

    monkeypatch.setattr(Keyed, "routing_keys", routing_keys)
    result = replay([job.pk for job in jobs])
    assert result.changed == [jobs[1].pk]
    assert "ProgrammingError" in result.refused[jobs[0].pk]


def test_an_event_that_is_no_longer_wanted_is_skipped() -> None:
    job = not_worked_out(Keyed, who="nobody", tags=["a"])
    assert replay([job.pk]).changed == [job.pk]
    assert rows(job) == [("", "skipped", "its handler creates no job for the event")]


def test_jobs_that_exist_are_not_created_again() -> None:
    job = not_worked_out(Keyed, tags=["a", "b"])
    Job.objects.create(event_id=job.event_id, handler=job.handler, routing_key="a", state="failed")
    replay([job.pk])
    assert sorted(rows(job)) == [("a", "failed", ""), ("b", "pending", "")]
    other = not_worked_out(Keyed, tags=["a"])
    Job.objects.create(event_id=other.event_id, handler=job.handler, routing_key="a")
    replay([other.pk])
    assert rows(other)[0] == ("", "skipped", "the event already has all jobs of its handler")


def test_a_taken_unique_key_is_merged() -> None:
    job = not_worked_out(Debounced, who="w")
    publish(NewEvent(Happened, {"who": "w"}))
    taken = Job.objects.get(handler="test.debounced", state="pending")
    assert replay([job.pk]).changed == [job.pk]
    assert rows(job) == [("", "skipped", f"merged into job {taken.pk}")]


def test_a_replay_gives_the_job_its_unique_key_and_lane() -> None:
    job = not_worked_out(Debounced, who="w")
    replay([job.pk])
    job.refresh_from_db()
    assert (job.state, job.unique_key, job.attempt) == ("pending", "w", 0)
    assert job.finished_at is None
