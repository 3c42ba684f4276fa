"""Faults that the poller of OBS had, by the review of 2017 and later reports."""

import itertools
import time
from collections import Counter

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from tailrace.domains.builds.models import Poller
from tailrace.domains.builds.sources.log_client import LogClient
from tailrace.domains.builds.sources.log_reader import LogReader
from tailrace.domains.builds.sources.poll_lease import LeaseNotAvailable, PollLease, PollLeaseLost
from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tailrace.jobs.runtime.states import State
from tests.kit import PATIENCE, at_once, sessions_that_wait, wait_until
from tests.servers import backend as servers

pytestmark = pytest.mark.django_db(transaction=True)


def numbers():
    """How often each number of the log was recorded."""
    return Counter(map(int, Event.objects.values_list("source_id", flat=True)))


def once_each(end):
    return Counter(range(1, end + 1))


# --- 3. two runs of a job overlap, so events are sent twice ---


def test_only_one_job_reads_a_backend_at_a_time(backend):
    def take(number):
        try:
            return PollLease.acquire("main", f"{number + 1}.1")
        except LeaseNotAvailable as reason:
            return str(reason)

    answers = at_once(6, take)
    leases = [answer for answer in answers if isinstance(answer, PollLease)]
    assert len(leases) == 1
    assert {answer for answer in answers if isinstance(answer, str)} == {
        f"job {leases[0].holder.split('.')[0]} reads the log of main"
    }


def test_a_job_that_lost_its_lease_records_nothing(backend, clock, poll):
    backend.add(5)
    slow = PollLease.acquire("main", "1.1")
    clock.step(300)
    poll()
    with LogClient("main", backend.url) as client, pytest.raises(PollLeaseLost):
        LogReader(client, slow).read()
    assert numbers() == once_each(5)


# --- 4. events that cannot be logged block others; events that no job handles linger ---


def test_events_without_a_handler_create_no_jobs(backend, poll):
    for _ in range(50):
        backend.notify("NO_SUCH_EVENT", {"foo": "bar"})
    backend.notify("REPO_BUILD_STARTED", {"project": "p", "repo": "r", "arch": "a", "buildid": "b"})
    poll()
    unknown = Event.objects.filter(type="builds.unknown")
    assert unknown.count() == 50
    assert not Job.objects.filter(event__in=unknown).exists()


# --- 6. one bad event blocked all notifications for days ---


def test_one_bad_event_stops_no_other(backend, poll, poller):
    bad = {"reason": "r" * 100_000, "arch": "\x01\x02"}
    for _ in range(10):
        backend.notify("BUILD_FAIL", bad)
        backend.notify("SRCSRV_COMMIT", {"project": "p", "package": "q", "user": "u"})
    poll()
    assert Event.objects.filter(type="events.quarantined").count() == 10
    commits = Event.objects.filter(type="builds.commit")
    assert commits.count() == 10
    assert not commits.flagged().exists()
    assert poller().next_number == 21


# --- 7. the cursor is written after the events; a page stops for good; sync=lost jumps ahead ---


def test_killed_before_the_commit_loses_and_doubles_nothing(backend, another_process, poll, clock):
    backend.add(1500)
    with transaction.atomic(), connection.cursor() as cursor:
        # The events are written, their jobs wait for this lock: then the process dies.
        cursor.execute("LOCK TABLE tailrace_jobs_live IN EXCLUSIVE MODE")
        process = another_process()
        wait_until(
            lambda: sessions_that_wait("tailrace_jobs_live"),
            what="the other process waits before its commit",
        )
        process.kill()
        process.wait(PATIENCE)
    assert Event.objects.count() == 0
    assert Poller.objects.get().next_number == 1
    clock.step(60)
    poll()
    assert numbers() == once_each(1500)


def test_killed_after_the_commit_loses_and_doubles_nothing(backend, another_process, poll, clock):
    backend.add(1500)
    # The first read requests the end and the first number; the second page never comes.
    backend.faults.extend([lambda c, r: c.write(r)] * 4 + [servers.silent])
    process = another_process()
    wait_until(lambda: not backend.faults, what="the second page is requested")
    process.kill()
    process.wait(PATIENCE)
    assert Poller.objects.get().next_number == 1001
    clock.step(60)
    poll()
    assert numbers() == once_each(1500)


def test_a_page_that_fails_to_be_recorded_keeps_the_cursor(backend, poll, poller, clock):
    backend.add(5)
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE tailrace_events_event ADD CONSTRAINT no_three CHECK (source_id <> '3')"
            " NOT VALID"
        )
    try:
        assert poll().state == State.PENDING
        assert Event.objects.count() == 0
        assert poller().next_number == 1
        assert poller().lease_holder == ""
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE tailrace_events_event DROP CONSTRAINT no_three")
    clock.step(60)
    poll()
    assert numbers() == once_each(5)


def test_one_unknown_type_does_not_stop_the_page(backend, poll):
    backend.add(2)
    backend.notify("NEVER_HEARD_OF", {"a": "b"})
    backend.add(2)
    poll()
    assert numbers() == once_each(5)
    assert Event.objects.get(source_id="3").type == "builds.unknown"


def test_sync_lost_does_not_jump_ahead_silently(backend, poll):
    backend.add(1)
    poll()
    backend.add(1999)
    backend.log.prune_below(1500)
    poll()
    read = Event.objects.filter(type="builds.repo_publish_state")
    assert read.count() == 1 + 501
    assert "lost: 2 to 1499" in Event.objects.flagged().get().problem


@pytest.mark.parametrize(
    ("count", "most"), [(4_000, 64), pytest.param(20_000, 240, marks=pytest.mark.long)]
)
def test_a_backlog_costs_few_statements_per_page(count, most, backend, poll, capsys):
    kinds = itertools.cycle(("REPO_PUBLISH_STATE", "SRCSRV_COMMIT", "BUILD_SUCCESS"))
    values = {"project": "p", "package": "q", "repo": "r", "repository": "s", "arch": "a"}
    for kind in itertools.islice(kinds, count):
        backend.log.append(kind, values)
    started = time.monotonic()
    with CaptureQueriesContext(connection) as queries:
        job = poll()
    rate = count / (time.monotonic() - started)
    with capsys.disabled():
        print(f"\npoller: {rate:.0f} events/s of a backlog of {count}, with jobs")  # noqa: T201
    assert job.result["events"] == count
    assert Event.objects.count() == count
    assert len(queries) < most, f"of {count / 1000:g} pages"
