"""The poller reads everything once, in order, whatever the log does."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import connection as db

from tailrace.domains.builds.event_types.catalogue import by_raw_type
from tailrace.events.models import Event
from tailrace.jobs.engine.maintenance.sync_declared import sync
from tailrace.jobs.models import Job, Schedule
from tailrace.jobs.runtime.states import State
from tests.kit import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
OBS = Path(__file__).parents[2] / "data" / "obs"
CAPTURED = json.loads((OBS / "11-all-from-1-json.body").read_text())["notification"]


def replay(backend):
    for entry in CAPTURED:
        values = {
            key: value.encode("latin-1").decode() if "Ã" in value else value
            for key, value in entry["data"].items()
        }
        backend.log.append(entry["type"], values, int(entry["time"]))


@pytest.mark.parametrize("view", ["json", "xml"])
def test_the_captured_log_becomes_typed_events(backend, poll, poller, settings, view):
    settings.OBS_VIEW = view
    replay(backend)
    assert poll().state == State.COMPLETED
    events = list(Event.objects.order_by("id"))
    assert [event.source_id for event in events] == [str(n) for n in range(1, 38)]
    assert {event.source for event in events} == {"obs:main:1"}
    for event, entry in zip(events, CAPTURED, strict=True):
        known = by_raw_type().get(entry["type"])
        assert event.type == (known.name if known else "builds.unknown")
        assert event.occurred_at.timestamp() == int(entry["time"])
    commit = events[8]
    assert commit.subject == "home:alice/hello"
    assert commit.actor == "bob"
    assert commit.payload["comment"] == "bump <&2.0> é\nsecond line|pipe%"
    assert poller().next_number == 38
    assert poller().behind == 0


def test_odd_notifications_are_recorded_and_flagged(backend, poll):
    replay(backend)
    poll()
    flagged = {event.source_id: event for event in Event.objects.flagged()}
    assert {number: event.type for number, event in flagged.items()} == {
        "32": "builds.unknown",
        "33": "builds.build_fail",
        "34": "builds.build_fail",
        "35": "builds.unknown",
    }
    assert flagged["32"].payload == {
        "raw_type": "NO_SUCH_EVENT",
        "data": {"foo": "bar", "project": "home:alice"},
    }
    assert "missing keys: project, package" in flagged["34"].problem
    assert "unknown keys" in flagged["33"].problem
    assert flagged["33"].payload["surprise"] == "1"


def test_pages_of_a_thousand_are_read_on_at_once(backend, poll, poller):
    backend.add(2340)
    job = poll()
    assert job.result["events"] == 2340
    assert Event.objects.count() == 2340
    assert poller().next_number == 2341
    starts = [int(read["start"]) for read in backend.reads if "start" in read]
    assert starts == [1, 1, 1000, 1999]


def test_a_second_read_brings_only_what_is_new(backend, poll):
    backend.add(3)
    poll()
    backend.add(2)
    assert poll().result["events"] == 2
    assert Event.objects.count() == 5


def test_an_empty_log_is_read_until_it_has_entries(backend, poll, poller):
    poll()
    assert poller().next_number == 1
    backend.add(1)
    poll()
    assert Event.objects.get().source_id == "1"


def test_the_first_read_begins_at_the_first_retained_entry(backend, poll, poller):
    backend.add(5000)
    backend.log.prune_below(4321)
    poll()
    assert Event.objects.count() == 5001 - 4321
    assert Event.objects.order_by("id").first().source_id == "4321"
    assert not Event.objects.flagged().exists()
    assert poller().next_number == 5001


def test_sync_lost_reads_what_is_left_and_records_the_gap(backend, poll, poller):
    backend.add(10)
    poll()
    backend.add(4000)
    backend.log.prune_below(2222)
    before = len(backend.reads)
    poll()
    numbers = Event.objects.filter(type="builds.repo_publish_state").values_list(
        "source_id", flat=True
    )
    assert sorted(map(int, numbers)) == [*range(1, 11), *range(2222, 4011)]
    (lost,) = Event.objects.flagged()
    assert lost.type == "builds.sync_lost"
    assert lost.payload == {"backend": "main", "from": 11, "to": 2222}
    assert "2211 notifications of main are lost: 11 to 2221" in lost.problem
    assert poller().next_number == 4011
    assert len(backend.reads) - before < 36
    assert all(read.get("noprune") == "1" for read in backend.reads)


def test_a_log_that_was_reset_gets_a_new_epoch(backend, poll, poller):
    backend.add(50)
    poll()
    backend.log.reset()
    backend.add(7, "another")
    poll()
    assert poller().epoch == 2
    assert poller().next_number == 8
    fresh = Event.objects.filter(source="obs:main:2")
    assert fresh.filter(type="builds.repo_publish_state").count() == 7
    (reset,) = Event.objects.flagged()
    assert reset.type == "builds.log_reset"
    assert reset.payload == {
        "backend": "main", "epoch": 2, "was_at": 51, "begins_at": 1, "end": 8, "agreed": False,
    }  # fmt: skip


def test_noprune_is_a_setting(backend, poll, settings):
    settings.OBS_NOPRUNE = False
    backend.add(3500)
    poll()
    assert backend.log.first == 2498
    assert Event.objects.count() == 3500


def test_a_long_poll_comes_back_with_the_news(backend, poll, settings):
    settings.OBS_LONG_POLL = True
    backend.add(1)
    poll()
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_add_when_asked, backend)
        poll()
    assert [read.get("block") for read in backend.reads[-3:]] == [None, "1", None]
    assert Event.objects.count() == 2


def _add_when_asked(backend):
    wait_until(lambda: "block" in backend.reads[-1], what="the poller waits")
    backend.add(1)


def test_a_long_poll_without_news_is_no_error(backend, poll, poller, settings, monkeypatch):
    monkeypatch.setattr("tailrace.domains.builds.sources.log_client.BLOCK_SECONDS", 0.3)
    settings.OBS_LONG_POLL = True
    backend.add(1)
    poll()
    assert poll().state == State.COMPLETED
    assert poller().errors_in_row == 0
    assert poller().next_number == 2


def test_a_long_backlog_is_read_by_several_jobs(
    backend, poll, poller, monkeypatch, run_jobs, clock
):
    monkeypatch.setattr("tailrace.domains.builds.sources.log_reader.MAX_SECONDS", 0.0)
    backend.add(3500)
    job = poll()
    while job.state == State.PENDING:
        assert "the log has more" in job.error
        assert (job.due_at - clock.now()).total_seconds() < 2
        clock.step(2)
        assert run_jobs("builds.poll")
        job.refresh_from_db()
    assert job.state == State.COMPLETED
    assert job.claim_no == 4
    assert job.attempt == 1
    assert Event.objects.count() == 3500
    assert poller().lease_holder == ""


def test_a_cancelled_poll_stops_between_two_pages(backend, poll, poller):
    backend.add(3500)

    def cancel_then_answer(connection, response):
        Job.objects.filter(handler="builds.poll").update(cancel_requested=True)
        db.close()
        connection.write(response)

    backend.faults.extend([lambda c, r: c.write(r)] * 2 + [cancel_then_answer])
    assert poll().state == State.CANCELLED
    assert Event.objects.count() == 1000
    assert poller().next_number == 1001
    assert poller().lease_holder == ""


def test_a_backend_that_is_no_longer_configured_is_skipped(backend, poll, settings):
    settings.OBS_BACKENDS = {"other": backend.url}
    job = poll()
    assert job.state == State.SKIPPED
    assert "OBS_BACKEND_URL has no backend 'main'" in job.error
    assert backend.requests == []


def test_each_configured_backend_has_a_schedule(settings):
    settings.OBS_BACKENDS = {"a": "http://127.0.0.1:1", "b": "http://127.0.0.1:2"}
    sync()
    schedules = Schedule.objects.filter(handler="builds.poll", enabled=True)
    assert sorted(schedules.values_list("routing_key", flat=True)) == ["a", "b"]
