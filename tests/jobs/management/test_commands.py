"""The commands queues, jobs and events."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError

from tailrace.events.management.subcommands import call_subcommand
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.models import Attempt, Job, Queue
from tailrace.jobs.operations.pause import pause
from tailrace.jobs.runtime.states import State

pytestmark = pytest.mark.django_db

QUEUE = "test.commands"


def run(*args: str) -> str:
    out = StringIO()
    call_subcommand(*args, stdout=out)
    return out.getvalue()


@pytest.fixture(autouse=True)
def queue() -> Queue:
    return Queue.objects.create(name=QUEUE)


def job(state: State = State.PENDING, **facts: object) -> Job:
    return Job.objects.create(handler=QUEUE, state=state, **facts)


def failed(clock, days_ago: float = 0, **facts: object) -> Job:
    at = clock.now() - timedelta(days=days_ago)
    return job(State.FAILED, finished_at=at, attempt=4, error="the server said 500", **facts)


def row(text: str, name: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(name)]
    return line.split()


def test_queues_shows_counts_and_the_oldest_due_job(clock) -> None:
    job(due_at=clock.now() - timedelta(minutes=5))
    job(due_at=clock.now() + timedelta(hours=1))
    job(State.RUNNING)
    failed(clock)
    assert row(run("queues"), QUEUE) == [QUEUE, "running", "2", "1", "1", "1", "5", "min", "ago"]


def test_queues_pauses_and_resumes() -> None:
    assert "paused" in run("queues", "--pause", QUEUE)
    assert row(run("queues"), QUEUE)[1] == "paused"
    assert "already paused" in run("queues", "--pause", QUEUE)
    assert "resumed" in run("queues", "--resume", QUEUE)
    assert Queue.objects.get(pk=QUEUE).paused_at is None


def test_queues_pauses_with_a_reason_and_an_end(clock) -> None:
    run("queues", "--pause", QUEUE, "--reason", "the disk is full", "--hours", "0.5")
    queue = Queue.objects.get(pk=QUEUE)
    assert queue.paused_reason == "the disk is full"
    assert queue.paused_until is not None
    assert abs(queue.paused_until - clock.now() - timedelta(minutes=30)) < timedelta(minutes=1)
    for hours in ("0", "-1", "nan", "9999999"):
        with pytest.raises(CommandError, match="--hours: must be above 0"):
            run("queues", "--pause", QUEUE, "--hours", hours)


def test_a_reason_that_is_too_long_is_refused() -> None:
    with pytest.raises(CommandError, match="--reason: must have at most 200 characters"):
        run("queues", "--pause", QUEUE, "--reason", "x" * 201)
    assert not Queue.objects.get(pk=QUEUE).paused


def test_verdict_names_the_causes_and_its_status_is_one(clock) -> None:
    pause(QUEUE, "ada")
    job()
    with pytest.raises(SystemExit) as ended:
        run("verdict")
    assert ended.value.code == 1


def test_a_misspelt_queue_is_named_with_a_suggestion() -> None:
    for command in (("queues", "--pause"), ("jobs", "list", "--queue")):
        with pytest.raises(CommandError, match=r"'test\.comands'; did you mean 'test\.commands'"):
            run(*command, "test.comands")


def test_jobs_list_filters_by_queue_and_state(clock) -> None:
    failed_job = failed(clock)
    job()
    listed = run("jobs", "list", "--queue", QUEUE, "--state", "failed").splitlines()
    assert [line.split()[0] for line in listed] == ["id", str(failed_job.pk)]


def test_jobs_show_prints_fields_and_attempts(clock) -> None:
    broken = failed(clock, payload={"file": "a.gpx"})
    Attempt.objects.create(
        job=broken, claim_no=1, outcome="retried", message="refused", traceback="Traceback: here"
    )
    text = run("jobs", "show", str(broken.pk))
    for part in ("the server said 500", '{"file": "a.gpx"}', "claim 1: retried", "Traceback: here"):
        assert part in text


@pytest.mark.parametrize(
    ("minutes", "attempt", "state"),
    [(-1, 0, "queued"), (60, 0, "scheduled"), (60, 1, "retry scheduled")],
)
def test_each_command_has_the_same_word_for_the_state_of_a_job(
    clock, minutes: int, attempt: int, state: str
) -> None:
    shown = job(due_at=clock.now() + timedelta(minutes=minutes), attempt=attempt)
    job(State.RUNNING)
    id = str(shown.pk)
    assert f"{id}  {QUEUE}  {state}  " in run("jobs", "list", "--state", state)
    assert f"state {state}" in " ".join(run("jobs", "show", id).split())
    assert f"job {id} ({QUEUE}) is {state}\n" in run("explain", id)
    assert "pending" not in run("jobs", "replay", id)
    for other in {"queued", "scheduled", "retry scheduled"} - {state}:
        assert QUEUE not in run("jobs", "list", "--state", other)


def test_jobs_show_of_an_unknown_job_fails() -> None:
    with pytest.raises(CommandError, match="there is no job 12345678"):
        run("jobs", "show", "12345678")


def test_a_dry_run_counts_and_changes_nothing(clock) -> None:
    failed(clock)
    failed(clock)
    assert run("jobs", "replay", "--queue", QUEUE, "--dry-run").startswith(
        "Dry run: replay would change 2 jobs"
    )
    assert Job.objects.failed().count() == 2


def test_replay_by_filter_takes_jobs_failed_since_a_time(clock) -> None:
    new, old, pending = failed(clock), failed(clock, days_ago=3), job()
    text = run("jobs", "replay", "--queue", QUEUE, "--failed-since", "1d")
    assert "Jobs queued again: 1" in text
    new.refresh_from_db()
    old.refresh_from_db()
    pending.refresh_from_db()
    assert (new.state, new.attempt, new.error) == ("pending", 0, "")
    assert old.state == "failed"
    assert pending.state == "pending"


def test_replay_of_a_completed_job_is_refused_with_the_reason() -> None:
    done = job(State.COMPLETED)
    assert f"Job {done.pk} was not changed: it is completed" in run("jobs", "replay", str(done.pk))


def test_an_action_without_ids_or_filter_is_refused(clock) -> None:
    failed(clock)
    with pytest.raises(CommandError, match="needs job ids or a filter"):
        run("jobs", "replay")
    assert Job.objects.failed().count() == 1


def test_an_invalid_time_is_refused(clock) -> None:
    for wrong in ("yesterday", "2x", "2026-13-01T00:00"):
        with pytest.raises(CommandError, match=f"'{wrong}' is neither a time"):
            run("jobs", "replay", "--failed-since", wrong)


def test_cancel_requests_running_jobs_to_stop() -> None:
    pending, running = job(), job(State.RUNNING)
    text = run("jobs", "cancel", str(pending.pk), str(running.pk))
    assert "Jobs cancelled: 1" in text
    assert "Running jobs requested to stop: 1" in text
    pending.refresh_from_db()
    running.refresh_from_db()
    assert (pending.state, running.state) == ("cancelled", "running")
    assert running.cancel_requested


def test_retry_makes_a_scheduled_retry_due_now(clock) -> None:
    later = job(attempt=1, due_at=clock.now() + timedelta(hours=1))
    assert "Jobs due now: 1" in run("jobs", "retry", str(later.pk))
    later.refresh_from_db()
    assert later.due_at <= clock.now()


def test_events_show_prints_event_jobs_and_effects(clock) -> None:
    quarantined = {"type": "x", "payload": {"a": 1}, "reason": "no such type"}
    (event,) = publish(NewEvent("events.quarantined", quarantined, subject="home:alice"))
    (effect,) = publish(NewEvent("events.quarantined", quarantined, cause_id=event.id))
    failed(clock, event_id=event.id, routing_key="main")
    text = run("events", "show", str(event.id))
    for part in ("home:alice", '"reason": "no such type"', QUEUE, "main", "the server said 500"):
        assert part in text
    chain = text.split("chain\n")[1].splitlines()
    assert chain == [
        f"* {event.id} events.quarantined home:alice: has failures",
        f"  - {effect.id} events.quarantined: no jobs",
    ]


def test_events_show_of_an_unknown_event_fails() -> None:
    with pytest.raises(CommandError, match="there is no event 12345678"):
        run("events", "show", "12345678")


def test_events_list_shows_the_flagged_ones() -> None:
    publish(NewEvent("no.such", {}), outside=True)
    assert "no event type is called 'no.such'" in run("events", "list", "--flagged")
    Event.objects.update(acknowledged_at="2026-11-21T00:00Z")
    assert "no.such" not in run("events", "list", "--flagged")
