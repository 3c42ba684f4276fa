"""What the review of 2017 found in OBS's event subsystem, and what its users met later.

Each test is named after its item in the domain's specification: the fault must not be here.
"""

import itertools
import json
import subprocess
import sys
import time
from collections import Counter

import pytest
from django.db import connection, transaction

from domains.builds.models import Poller, ProjectLogEntry
from domains.builds.sources.client import Backend
from domains.builds.sources.reader import Reader
from domains.builds.sources.turn import NotNow, Turn, TurnLost
from events.models import Event
from events.publish import NewEvent, publish
from jobs.drain import drain
from jobs.models import Job
from jobs.prune import prune
from jobs.states import State
from tests.builds.bus_kit import NOTIFY, SECRET, commits, owed
from tests.kit import ROOT, at_once, wait_until
from tests.servers import backend as servers
from tests.servers.web import Answer, closed_port, serving

pytestmark = pytest.mark.django_db(transaction=True)

READ_ALONE = """
import django
django.setup()
from django.conf import settings
from domains.builds.sources.client import Backend
from domains.builds.sources.reader import Reader
from domains.builds.sources.turn import Turn
turn = Turn.take("main", "999.1")
with Backend("main", settings.OBS_BACKENDS["main"]) as backend:
    Reader(backend, turn).read()
"""


def numbers():
    """How often each number of the log was recorded."""
    return Counter(map(int, Event.objects.values_list("source_id", flat=True)))


def once_each(end):
    return Counter(range(1, end + 1))


@pytest.fixture
def another_process(process_env, backend):
    """Start a process that reads the backend's log; all are killed in the end."""
    started = []

    def start():
        env = process_env | {"OBS_BACKEND_URL": f"main={backend.url}", "OBS_TIMEOUT_SECONDS": "20"}
        started.append(subprocess.Popen([sys.executable, "-c", READ_ALONE], env=env, cwd=ROOT))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait(10)


# --- 3. two runs of a job overlap, so events are sent twice ---


def test_3_only_one_reads_a_backend_at_a_time(backend):
    def take(number):
        try:
            return Turn.take("main", f"{number + 1}.1")
        except NotNow as reason:
            return str(reason)

    answers = at_once(6, take)
    turns = [answer for answer in answers if isinstance(answer, Turn)]
    assert len(turns) == 1
    assert {answer for answer in answers if isinstance(answer, str)} == {
        f"job {turns[0].holder.split('.')[0]} reads the log of main"
    }


def test_3_who_lost_the_turn_records_nothing(backend, clock, poll):
    backend.add(5)
    slow = Turn.take("main", "1.1")
    clock.step(300)
    poll()
    with Backend("main", backend.url) as client, pytest.raises(TurnLost):
        Reader(client, slow).read()
    assert numbers() == once_each(5)


# --- 4. events that cannot be logged block others; events that no job handles linger ---


def test_4_events_that_nobody_handles_owe_nothing(backend, poll):
    for _ in range(50):
        backend.notify("NO_SUCH_EVENT", {"foo": "bar"})
    backend.notify("REPO_BUILD_STARTED", {"project": "p", "repo": "r", "arch": "a", "buildid": "b"})
    poll()
    unknown = Event.objects.filter(type="builds.unknown")
    assert unknown.count() == 50
    assert not Job.objects.filter(event__in=unknown).exists()


# --- 6. one bad event blocked all notifications for days ---


def test_6_one_bad_event_stops_no_other(backend, poll, poller):
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


def test_7_killed_before_the_commit_nothing_is_lost_or_doubled(
    backend, another_process, poll, clock
):
    backend.add(1500)
    with transaction.atomic(), connection.cursor() as cursor:
        # The events are written, their jobs wait for this lock: then the process dies.
        cursor.execute("LOCK TABLE jobs_job IN EXCLUSIVE MODE")
        process = another_process()
        wait_until(lambda: _is_waiting(cursor), what="the other process stands before its commit")
        process.kill()
        process.wait(10)
    assert Event.objects.count() == 0
    assert Poller.objects.get().next_number == 1
    clock.step(60)
    poll()
    assert numbers() == once_each(1500)


def test_7_killed_after_the_commit_nothing_is_lost_or_doubled(
    backend, another_process, poll, clock
):
    backend.add(1500)
    # The first contact asks for the end and the first number; the second page never comes.
    backend.faults.extend([lambda c, r: c.write(r)] * 4 + [servers.silent])
    process = another_process()
    wait_until(lambda: not backend.faults, what="the second page is asked for")
    process.kill()
    process.wait(10)
    assert Poller.objects.get().next_number == 1001
    clock.step(60)
    poll()
    assert numbers() == once_each(1500)


def test_7_a_page_that_fails_to_be_recorded_leaves_the_cursor(backend, poll, poller, clock):
    backend.add(5)
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE events_event ADD CONSTRAINT no_three CHECK (source_id <> '3') NOT VALID"
        )
    try:
        assert poll().state == State.PENDING
        assert Event.objects.count() == 0
        assert poller().next_number == 1
        assert poller().lease_holder == ""
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE events_event DROP CONSTRAINT no_three")
    clock.step(60)
    poll()
    assert numbers() == once_each(5)


def test_7_one_unknown_type_does_not_stop_the_page(backend, poll):
    backend.add(2)
    backend.notify("NEVER_HEARD_OF", {"a": "b"})
    backend.add(2)
    poll()
    assert numbers() == once_each(5)
    assert Event.objects.get(source_id="3").type == "builds.unknown"


def test_7_sync_lost_does_not_jump_ahead_silently(backend, poll):
    backend.add(1)
    poll()
    backend.add(1999)
    backend.log.prune_below(1500)
    poll()
    read = Event.objects.filter(type="builds.repo_publish_state")
    assert read.count() == 1 + 501
    assert "lost: 2 to 1499" in Event.objects.flagged().get().problem


def test_the_poller_keeps_up_with_2000_events_per_second(backend, poll, capsys):
    kinds = itertools.cycle(("REPO_PUBLISH_STATE", "SRCSRV_COMMIT", "BUILD_SUCCESS"))
    values = {"project": "p", "package": "q", "repo": "r", "repository": "s", "arch": "a"}
    for kind in itertools.islice(kinds, 20_000):
        backend.log.append(kind, values)
    started = time.monotonic()
    job = poll()
    rate = 20_000 / (time.monotonic() - started)
    with capsys.disabled():
        print(f"\npoller: {rate:.0f} events/s of a backlog of 20000, with jobs")  # noqa: T201
    assert job.result["events"] == 20_000
    assert Event.objects.count() == 20_000
    assert rate > 2000


def _is_waiting(cursor):
    cursor.execute("SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'jobs_job'::regclass")
    return cursor.fetchone()


# --- 1. no job tracks failures; nothing tells "not started" from "done" and "failed" ---


@pytest.fixture
def two_buses(settings, tmp_path):
    """A bus that works, and one on a port where nobody listens until `back(server)`."""
    settings.BUS_WEBHOOK_SECRET = SECRET
    path = tmp_path / "bus.ndjson"
    settings.BUS_BACKENDS = {
        "file": f"file://{path}",
        "hook": f"http://127.0.0.1:{closed_port()}/",
    }
    return path


def announced(path):
    return Counter(json.loads(line)["id"] for line in path.read_text().splitlines())


def test_1_not_started_done_and_failed_are_told_apart(two_buses, settings, run_jobs):
    with serving(lambda asked: Answer(400)) as server:
        settings.BUS_BACKENDS |= {"hook": server.url}
        (done,) = commits()
        run_jobs(NOTIFY)
        (waits,) = commits()
    assert [job.state for job in owed([done], "file")] == ["completed"]
    (failed,) = owed([done], "hook")
    assert (failed.state, failed.attempt) == ("failed", 1)
    assert "answered 400" in failed.error
    assert failed.attempts.get().message == failed.error
    assert {job.state for job in owed([waits])} == {"pending"}


# --- 2. the flag `queued` is set before the payload is posted, so a failed post is lost ---


def test_2_a_failed_post_is_not_lost(two_buses, settings, run_jobs, clock):
    events = commits(5)
    run_jobs(NOTIFY)
    assert {job.state for job in owed(events, "hook")} == {"pending"}
    with serving() as server:
        settings.BUS_BACKENDS |= {"hook": server.url}
        clock.step(900)
        run_jobs(NOTIFY)
        posted = Counter(int(asked.headers["webhook-id"]) for asked in server.asked)
    assert posted == Counter(event.id for event in events)
    assert {job.state for job in owed(events)} == {"completed"}


# --- 3. two runs of a job overlap, so events are sent twice ---


def test_3_two_runs_at_once_send_no_event_twice(two_buses, settings):
    del settings.BUS_BACKENDS["hook"]
    events = commits(400)
    at_once(4, lambda number: [drain(NOTIFY) for _ in range(5)])
    assert announced(two_buses) == Counter(event.id for event in events)
    assert {job.state for job in owed(events)} == {"completed"}


# --- 4. an event that cannot be logged is retried for ever, and blocks all others ---


def test_4_events_that_cannot_be_logged_are_settled_and_block_no_other(run_jobs):
    publish([NewEvent("builds.delete_project", {"project": "doomed"})])
    late = [
        NewEvent("builds.commit", {"project": "doomed", "package": "q", "rev": str(number)})
        for number in range(300)
    ]
    publish(late)
    (sound,) = commits()
    run_jobs("builds.project_log")
    assert ProjectLogEntry.objects.get().event_id == sound.id
    logs = Job.objects.filter(handler="builds.project_log")
    assert not logs.filter(state__in=("pending", "running", "failed")).exists()
    assert logs.filter(state="skipped", attempt=1).count() == 300


# --- 5. a counter is never right after an exception, so events are never cleaned ---


def test_5_what_is_done_is_read_from_the_jobs_and_so_right_after_an_exception(
    two_buses, settings, run_jobs, clock
):
    fields = {field.name for field in Event._meta.get_fields() if field.concrete}
    assert not {name for name in fields if "undone" in name or "sent" in name or "queued" in name}
    with serving(lambda asked: Answer(500)) as server:
        settings.BUS_BACKENDS |= {"hook": server.url}
        (event,) = commits()
        for _ in range(60):
            run_jobs()
            clock.step(4400)
    assert {job.state for job in owed([event])} == {"completed", "failed"}
    clock.step(200 * 86_400)
    prune()
    assert not Event.objects.filter(pk=event.id).exists()
    assert not Job.objects.exists()


# --- 9. the payload is copied into each job, notification and log entry ---


def test_9_the_payload_stands_on_the_event_alone(two_buses, run_jobs):
    (event,) = commits(comment="a long story " * 60, files="Modified:\n  every.file\n" * 30)
    run_jobs("builds.project_log")
    assert set(Job.objects.filter(event=event.id).values_list("payload", flat=True)) == {None}
    entry = ProjectLogEntry.objects.get()
    assert entry.event.payload["comment"].startswith("a long story")
    assert len(json.dumps(entry.details)) < len(json.dumps(event.payload)) / 2
    assert not {"project", "package", "user"} & entry.details.keys()
