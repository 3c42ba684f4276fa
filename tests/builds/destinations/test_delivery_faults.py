"""Faults that event delivery in OBS had, by the review of 2017 and later reports."""

import json
from collections import Counter

import pytest

from tailrace.domains.builds.models import ProjectLogEntry
from tailrace.events.models import Event
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.engine.maintenance.pruning.prune import prune
from tailrace.jobs.models import Job
from tests.builds.destinations.kit import NOTIFY, SECRET, commits, jobs_of
from tests.kit import at_once
from tests.servers.web import Response, closed_port, serving

pytestmark = pytest.mark.django_db(transaction=True)

# --- 1. no job tracks failures; nothing tells "not started" from "done" and "failed" ---


@pytest.fixture
def two_buses(settings, tmp_path):
    """A bus that works, and one on a closed port until `back(server)`."""
    settings.BUS_WEBHOOK_SECRET = SECRET
    path = tmp_path / "bus.ndjson"
    settings.BUS_BACKENDS = {
        "file": f"file://{path}",
        "hook": f"http://127.0.0.1:{closed_port()}/",
    }
    return path


def announced(path):
    return Counter(json.loads(line)["id"] for line in path.read_text().splitlines())


def test_not_started_done_and_failed_are_distinct(two_buses, settings, run_jobs):
    with serving(lambda request: Response(400)) as server:
        settings.BUS_BACKENDS |= {"hook": server.url}
        (done,) = commits()
        run_jobs(NOTIFY)
        (waits,) = commits()
    assert [job.state for job in jobs_of([done], "file")] == ["completed"]
    (failed,) = jobs_of([done], "hook")
    assert (failed.state, failed.attempt) == ("failed", 1)
    assert "answered 400" in failed.error
    assert failed.attempts.get().message == failed.error
    assert {job.state for job in jobs_of([waits])} == {"pending"}


# --- 2. the flag `queued` is set before the payload is posted, so a failed post is lost ---


def test_a_failed_post_is_not_lost(two_buses, settings, run_jobs, clock):
    events = commits(5)
    run_jobs(NOTIFY)
    assert {job.state for job in jobs_of(events, "hook")} == {"pending"}
    with serving() as server:
        settings.BUS_BACKENDS |= {"hook": server.url}
        clock.step(900)
        run_jobs(NOTIFY)
        posted = Counter(int(request.headers["webhook-id"]) for request in server.requests)
    assert posted == Counter(event.id for event in events)
    assert {job.state for job in jobs_of(events)} == {"completed"}


# --- 3. two runs of a job overlap, so events are sent twice ---


def test_two_runs_at_once_send_no_event_twice(two_buses, settings):
    del settings.BUS_BACKENDS["hook"]
    events = commits(400)
    at_once(4, lambda number: [drain(NOTIFY) for _ in range(5)])
    assert announced(two_buses) == Counter(event.id for event in events)
    assert {job.state for job in jobs_of(events)} == {"completed"}


# --- 5. a counter is never right after an exception, so events are never cleaned ---


def test_done_is_derived_from_jobs_and_right_after_errors(two_buses, settings, run_jobs, clock):
    fields = {field.name for field in Event._meta.get_fields() if field.concrete}
    assert not {name for name in fields if "undone" in name or "sent" in name or "queued" in name}
    with serving(lambda request: Response(500)) as server:
        settings.BUS_BACKENDS |= {"hook": server.url}
        (event,) = commits()
        run_jobs()
        for _ in range(60):
            run_jobs("builds.notify_backend")
            clock.step(4400)
    assert {job.state for job in jobs_of([event])} == {"completed", "failed"}
    clock.step(200 * 86_400)
    prune()
    assert not Event.objects.filter(pk=event.id).exists()
    assert not Job.objects.exists()


# --- 9. the payload is copied into each job, notification and log entry ---


def test_the_payload_is_stored_only_on_the_event(two_buses, run_jobs):
    (event,) = commits(comment="a long story " * 60, files="Modified:\n  every.file\n" * 30)
    run_jobs("builds.project_log")
    assert set(Job.objects.filter(event=event.id).values_list("payload", flat=True)) == {None}
    entry = ProjectLogEntry.objects.get()
    assert entry.event.payload["comment"].startswith("a long story")
    assert len(json.dumps(entry.details)) < len(json.dumps(event.raw_payload)) / 2
    assert not {"project", "package", "user"} & entry.details.keys()
