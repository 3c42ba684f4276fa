"""A log that lost entries, was restored or was replaced: only what is new is recorded, once."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction

from tailrace.domains.builds.models import LogPart, Poller
from tailrace.domains.builds.sources import log_parts
from tailrace.domains.builds.sources.log_client import LogClient
from tailrace.domains.builds.sources.log_reader import LogReader
from tailrace.domains.builds.sources.poll_lease import LeaseNotAvailable, PollLease
from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tailrace.jobs.runtime.states import State
from tests.kit import PATIENCE, at_once, sessions_that_wait, wait_until
from tests.servers import backend as servers

pytestmark = pytest.mark.django_db(transaction=True)

BEGIN = 1_795_220_000


def write(backend, *texts):
    """Append an entry for each text, a second after the one before."""
    for text in texts:
        values = {"project": "p", "repo": "r", "state": text}
        backend.log.append("REPO_PUBLISH_STATE", values, BEGIN + backend.log.end)


def texts(prefix, first, last):
    return [f"{prefix}{number}" for number in range(first, last + 1)]


def recorded():
    """The texts of the entries that were recorded, in their order."""
    events = Event.objects.filter(type="builds.repo_publish_state").order_by("id")
    return [event.payload["state"] for event in events]


def messages():
    """How many bus messages there are."""
    return Job.objects.filter(handler="builds.notify_backend").count()


def reset():
    """The payload of the only event of a reset, without what is the same in all tests."""
    payload = Event.objects.get(type="builds.log_reset").payload
    return {key: value for key, value in payload.items() if key not in ("backend", "epoch")}


def test_lost_last_lines_with_others_in_their_place(backend, poll, poller):
    write(backend, *texts("old", 1, 300))
    poll()
    backend.log.cut(298)
    write(backend, *texts("new", 298, 302))
    before = len(backend.reads)
    poll()
    assert recorded() == texts("old", 1, 300) + texts("new", 298, 302)
    assert messages() == 305
    assert reset() == {"was_at": 301, "begins_at": 298, "end": 303, "agreed": True}
    problem = Event.objects.flagged().get().problem
    assert "3 entries (298 to 300) were removed, and 5 new entries were added" in problem
    assert (poller().epoch, poller().next_number) == (2, 303)
    assert len(backend.reads) - before < 15
    poll()
    assert messages() == 305


def test_lost_last_lines_and_nothing_new_is_recorded_at_once(backend, poll, poller):
    write(backend, *texts("old", 1, 20))
    poll()
    backend.log.cut(11)
    poll()
    assert reset() == {"was_at": 21, "begins_at": 11, "end": 11, "agreed": True}
    poll()
    write(backend, "new")
    poll()
    assert recorded() == [*texts("old", 1, 20), "new"]
    assert Event.objects.get(payload__state="new").source == "obs:main:2"
    assert poller().next_number == 12


def test_restored_from_a_backup_and_continued_twice(backend, poll, poller):
    write(backend, *texts("first", 1, 60))
    backup = backend.log.copy()
    write(backend, *texts("lost", 61, 90))
    poll()
    backend.log.put_back(backup)
    write(backend, *texts("second", 61, 200))
    poll()
    backend.log.put_back(backup)
    write(backend, *texts("third", 61, 62))
    poll()
    assert recorded() == [
        *texts("first", 1, 60), *texts("lost", 61, 90), *texts("second", 61, 200), "third61",
        "third62",
    ]  # fmt: skip
    assert (poller().epoch, poller().next_number) == (3, 63)


def test_a_reset_that_grew_past_the_cursor_loses_nothing(backend, poll, poller):
    write(backend, *texts("old", 1, 300))
    poll()
    backend.log.reset()
    write(backend, *texts("new", 1, 400))
    poll()
    assert recorded() == texts("old", 1, 300) + texts("new", 1, 400)
    assert messages() == 700
    assert reset() == {"was_at": 301, "begins_at": 1, "end": 401, "agreed": False}
    assert poller().next_number == 401


def test_identical_entries_are_told_apart_by_their_numbers(backend, poll):
    def same():
        backend.log.append("REPO_PUBLISH_STATE", {"project": "p", "repo": "r", "state": "s"}, BEGIN)

    for _ in range(6):
        same()
    poll()
    backend.log.cut(3)
    same()
    write(backend, "other")
    same()
    poll()
    assert recorded() == ["s"] * 6 + ["other", "s"]
    assert reset()["begins_at"] == 4


def test_a_pruned_entry_before_the_cursor_is_no_reset(backend, poll, poller):
    write(backend, *texts("t", 1, 50))
    poll()
    backend.log.prune_below(51)
    poll()
    write(backend, *texts("t", 51, 53))
    backend.log.prune_below(52)
    poll()
    assert recorded() == texts("t", 1, 50) + texts("t", 52, 53)
    (lost,) = Event.objects.flagged()
    assert (lost.type, lost.payload["from"], lost.payload["to"]) == ("builds.sync_lost", 51, 52)
    assert poller().epoch == 1


def test_a_log_that_was_cut_and_pruned_continues_where_both_agree(backend, poll):
    write(backend, *texts("old", 1, 900))
    poll()
    backend.log.prune_below(700)
    backend.log.cut(800)
    write(backend, *texts("new", 800, 810))
    poll()
    assert recorded() == texts("old", 1, 900) + texts("new", 800, 810)
    assert reset()["begins_at"] == 800


def test_an_event_that_was_pruned_here_is_not_recorded_again(backend, poll):
    write(backend, *texts("old", 1, 40))
    poll()
    Job.objects.all().delete()
    Event.objects.all().delete()
    backend.log.cut(31)
    write(backend, "new")
    poll()
    assert recorded() == ["new"]


def test_a_log_without_known_digests_is_taken_as_it_is(backend, poll, poller):
    write(backend, *texts("old", 1, 10))
    poll()
    LogPart.objects.all().delete()
    write(backend, "t11")
    poll()
    assert recorded()[-1] == "t11"
    assert poller().epoch == 1
    assert log_parts.nearest(poller().pk, 99)[0] == 11


def test_digests_of_very_old_entries_are_forgotten(backend, poll, poller, monkeypatch):
    monkeypatch.setattr(log_parts, "KEPT_ENTRIES", 10)
    for number in range(1, 31):
        write(backend, f"t{number}")
        poll()
    assert 10 <= LogPart.objects.count() <= 12
    backend.log.cut(25)
    write(backend, "new")
    poll()
    assert recorded() == [*texts("t", 1, 30), "new"]


def test_cut_while_a_blocking_read_waits(backend, poll, poller, settings, monkeypatch):
    monkeypatch.setattr("tailrace.domains.builds.sources.log_client.BLOCK_SECONDS", 1.0)
    settings.OBS_LONG_POLL = True
    write(backend, *texts("old", 1, 20))
    poll()
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_when_waited_for, backend, lambda: backend.log.cut(15))
        poll()
    assert recorded() == texts("old", 1, 20)
    assert poll().state == State.COMPLETED
    assert reset()["begins_at"] == 15
    with ThreadPoolExecutor(1) as thread:
        # Grown past the cursor while the request waits: its answer is from another log.
        thread.submit(_when_waited_for, backend, lambda: _replace(backend, 30))
        poll()
    assert recorded() == texts("old", 1, 20) + texts("new", 1, 30)
    assert poller().epoch == 3
    assert poller().errors_in_row == 0


def _when_waited_for(backend, change):
    wait_until(lambda: "block" in backend.reads[-1], what="the poller waits")
    change()


def _replace(backend, count):
    backend.log.reset()
    write(backend, *texts("new", 1, count))


def test_two_pollers_record_a_cut_log_once(backend, poll):
    write(backend, *texts("old", 1, 100))
    poll()
    backend.log.cut(91)
    write(backend, *texts("new", 91, 120))

    def read(number):
        try:
            lease = PollLease.acquire("main", f"{900 + number}.1")
        except LeaseNotAvailable:
            return
        with LogClient("main", backend.url) as client:
            LogReader(client, lease).read()
        lease.release()

    at_once(4, read)
    assert recorded() == texts("old", 1, 100) + texts("new", 91, 120)
    assert Event.objects.filter(type="builds.log_reset").count() == 1
    assert messages() == 130


@pytest.mark.parametrize("killed", ["before", "after"])
def test_killed_around_the_commit_of_a_reset(killed, backend, another_process, poll, clock):
    write(backend, *texts("old", 1, 50))
    poll()
    backend.log.cut(41)
    write(backend, *texts("new", 41, 60))
    if killed == "before":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE tailrace_events_event IN EXCLUSIVE MODE")
            process = another_process()
            wait_until(
                lambda: sessions_that_wait("tailrace_events_event"),
                what="it waits before its commit",
            )
            process.kill()
            process.wait(PATIENCE)
        assert Poller.objects.get().epoch == 1
    else:
        backend.faults.extend([_silent_after_the_reset] * 60)
        process = another_process()
        wait_until(lambda: Poller.objects.get().epoch == 2, what="the reset is recorded")
        process.kill()
        process.wait(PATIENCE)
        backend.faults.clear()
    clock.step(60)
    poll()
    assert recorded() == texts("old", 1, 50) + texts("new", 41, 60)
    assert messages() == 70
    assert Event.objects.filter(type="builds.log_reset").count() == 1


def _silent_after_the_reset(source, response):
    epoch = Poller.objects.get().epoch
    connection.close()
    if epoch == 1:
        source.write(response)
    else:
        servers.silent(source, response)


def test_an_answer_that_contradicts_the_log_is_no_reset(backend, poll, poller, clock):
    write(backend, *texts("t", 1, 30))
    poll()
    backend.faults.append(servers.instead(lambda _: b'{"next":3,"notification":[]}'))
    poll()
    assert "changed during the search" in poller().error
    clock.step(30)
    poll()
    assert poller().error == ""
    assert recorded() == texts("t", 1, 30)
