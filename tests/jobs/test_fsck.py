"""fsck: each kind is planted, found, and repaired or said how to repair; then all is clean."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, IntegrityError, connection, transaction

from events import clock as events_clock
from events.models import Event
from events.publish import NewEvent, publish
from jobs.enqueue import enqueue
from jobs.fsck.check import everything
from jobs.models import Attempt, Job, Queue, Schedule, Slot
from tests.kit import claimed
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Other, Working

pytestmark = pytest.mark.django_db

GONE = "test.gone"


def fsck(*arguments: str) -> tuple[int, str]:
    """Run it without a pause; return its exit status and what it wrote."""
    out = StringIO()
    try:
        call_command("fsck", *arguments, "--pause", "0", stdout=out)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue()
    return 0, out.getvalue()


def report(*arguments: str) -> dict[str, Any]:
    """Return, by kind, what was found."""
    found = json.loads(fsck("--json", *arguments)[1])
    return {kind["kind"]: kind for kind in found["kinds"] if kind["found"]}


def sql(statement: str, *params: Any) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        return cursor.fetchone()[0] if cursor.description else None


def change(id: int | None, **fields: Any) -> int:
    """Write into a job's row what no code of ours would."""
    assert id is not None
    assert not fields or Job.objects.filter(pk=id).update(**fields) == 1
    return id


def ago(seconds: float) -> Any:
    return events_clock.now() - timedelta(seconds=seconds)


def _running(**fields: Any) -> int:
    id = enqueue(Working)
    assert claimed("test.work")
    return change(id, **fields)


def _finished(**fields: Any) -> int:
    return change(enqueue(Working), state="completed", finished_at=ago(10), **fields)


def _behind(parent: int | None, **fields: Any) -> int:
    return change(enqueue(Other), state="waiting", after_id=parent, **fields)


def _after_finished() -> int:
    parent = enqueue(Working)
    child = enqueue(Other, after=parent)
    change(parent, state="completed", finished_at=ago(300))
    return change(child)


def _attempt(job: int, claim_no: int) -> int:
    return Attempt.objects.create(job_id=job, claim_no=claim_no, outcome="retried").pk


def _circle() -> int:
    first = _behind(None)
    return change(first, after_id=_behind(first))


def _event_without_jobs() -> list[Any]:
    return _happened("test.log")


def _happened(name: str, tag: str = "") -> list[Any]:
    """Two events a minute old, the younger of which has lost its job of this handler."""
    payload = {"who": "w", "tags": [tag] if tag else []}
    _older, younger = publish([NewEvent(Happened, payload)] * 2)
    Event.objects.update(recorded_at=ago(600))
    lost = Job.objects.filter(event=younger.id, handler=name)
    assert lost.delete()[0] == 1
    return [younger.id, name, tag]


def _schedule(**fields: Any) -> Schedule:
    fields = {"name": "nightly", "handler": "test.work", "every_seconds": 3600} | fields
    return Schedule.objects.create(**fields)


def _behind_schedule() -> int:
    return _schedule(next_run_at=ago(4000)).pk


def _homeless_schedule() -> int:
    return _schedule(handler=GONE, next_run_at=ago(-4000)).pk


def _slot() -> int:
    schedule = _schedule(next_run_at=ago(-4000))
    return Slot.objects.create(schedule=schedule, at=ago(60), outcome="ran", job_id=10**9).pk


def _queue(name: str, **fields: Any) -> str:
    assert Queue.objects.filter(pk=name).update(**fields)
    return name


def _unserved() -> str:
    change(enqueue(Working), due_at=ago(900))
    return _queue("test.work", awake=True, awake_at=ago(30), drained_at=ago(800), resends=5)


def _retired() -> str:
    change(enqueue(Working), due_at=ago(900))
    return _queue("test.work", retired_at=ago(900))


def _missing_queue() -> str:
    Queue.objects.filter(pk="test.work").delete()
    return "test.work"


def _no_guard() -> str:
    sql("DROP INDEX job_unique_key")
    return "job_unique_key"


def _unique_twice() -> int:
    _no_guard()
    enqueue(Working, unique_key="k")
    return change(enqueue(Working), unique_key="k")


def _owed_twice() -> int:
    sql("DROP INDEX job_owed_once")
    (event,) = publish(NewEvent(Happened, {"who": "w"}))
    job = Job.objects.get(event=event.id, handler="test.log")
    return change(enqueue(Working), event_id=event.id, handler=job.handler)


@dataclass(frozen=True)
class Plant:
    """How to plant what a kind finds, and what becomes of it."""

    plant: Callable[[], Any]
    repaired: bool = True
    beside: tuple[str, ...] = ()
    """Kinds that find the same, seen from another side."""


PLANTS = {
    "database.guard_missing": Plant(_no_guard, repaired=False),
    "jobs.owed_twice": Plant(_owed_twice, repaired=False, beside=("database.guard_missing",)),
    "jobs.unique_key_twice": Plant(
        _unique_twice, repaired=False, beside=("database.guard_missing",)
    ),
    "jobs.unknown_state": Plant(lambda: change(enqueue(Working), state="lost"), repaired=False),
    "jobs.running_without_lease": Plant(lambda: _running(lease_until=None)),
    "jobs.lease_ended": Plant(lambda: _running(lease_until=ago(400))),
    "jobs.running_unclaimed": Plant(lambda: _running(claim_no=0, attempt=0), repaired=False),
    "jobs.finished_without_time": Plant(
        lambda: change(enqueue(Working), state="failed", finished_at=None)
    ),
    "jobs.unfinished_with_time": Plant(lambda: change(enqueue(Working), finished_at=ago(5))),
    "jobs.lease_without_run": Plant(lambda: _finished(lease_until=ago(-60))),
    "jobs.cancel_forgotten": Plant(lambda: change(enqueue(Working), cancel_requested=True)),
    "jobs.unknown_handler": Plant(
        lambda: change(enqueue(Working), handler=GONE, created_at=ago(600), due_at=ago(600))
    ),
    "jobs.waiting_unknown_handler": Plant(
        lambda: _behind(enqueue(Working), handler=GONE, created_at=ago(600)), repaired=False
    ),
    "jobs.no_lane": Plant(lambda: change(enqueue(Working), handler="test.fair", due_at=ago(200))),
    "jobs.event_missing": Plant(lambda: change(enqueue(Working), event_id=10**9), repaired=False),
    "jobs.waits_for_finished": Plant(_after_finished),
    "jobs.waits_for_missing": Plant(lambda: _behind_missing()),
    "jobs.waits_for_nothing": Plant(lambda: _behind(None), repaired=False),
    "jobs.waits_in_circle": Plant(_circle, repaired=False),
    "attempts.job_missing": Plant(lambda: _attempt(10**9, 1)),
    "attempts.claim_to_come": Plant(lambda: _attempt(change(enqueue(Working)), 3)),
    "queues.missing": Plant(_missing_queue),
    "queues.tokens": Plant(lambda: _queue("test.work", rate_limit=5, tokens=-1000)),
    "queues.unserved": Plant(_unserved, repaired=False),
    "queues.retired_with_work": Plant(_retired, repaired=False),
    "schedules.behind": Plant(_behind_schedule),
    "schedules.unknown_handler": Plant(_homeless_schedule, repaired=False),
    "slots.job_missing": Plant(_slot, repaired=False),
    "events.jobs_missing": Plant(_event_without_jobs),
}


def _behind_missing() -> int:
    parent = enqueue(Working)
    child = enqueue(Other, after=parent)
    Job.objects.filter(pk=parent).delete()
    return change(child)


def test_every_kind_is_planted_here() -> None:
    assert set(PLANTS) == {kind.name for kind in everything()}
    assert all(kind.description() and kind.advice for kind in everything())


def test_what_is_sound_is_clean(run_jobs, clock) -> None:
    publish([NewEvent(Happened, {"who": "w", "tags": ["a", "b"]})] * 3)
    parent = enqueue(Working)
    enqueue(Other, after=parent)
    enqueue(Working, {"do": "raise"})
    run_jobs()
    clock.step(60)
    run_jobs()
    enqueue(Working, delay=60)
    claimed("test.work")
    status, text = fsck()
    assert (status, text) == (0, f"{len(PLANTS)} kinds checked: clean\n")


@pytest.mark.parametrize("name", PLANTS)
def test_what_is_planted_is_found_and_repaired_or_said_how_to(name: str) -> None:
    case = PLANTS[name]
    key = case.plant()
    status, text = fsck()
    assert status == 1
    assert f"{name}: 1 found" in text, text
    found = report()
    assert set(found) == {name, *case.beside}
    assert found[name]["ids"] == [key]
    assert found[name]["advice"] in text
    assert report("--kind", name).keys() == {name}
    status, text = fsck("--fix")
    assert status == (0 if case.repaired else 1), text
    assert ("  repaired 1: " in text) == case.repaired
    assert fsck()[0] == status


def test_what_is_repaired_goes_on() -> None:
    unleased = _running(lease_until=None)
    unlaned = PLANTS["jobs.no_lane"].plant()
    child = _after_finished()
    fsck("--fix")
    assert (Job.objects.get(pk=unleased).state, Attempt.objects.get().outcome) == (
        "pending",
        "lost",
    )
    assert [job.id for job in claimed("test.fair")] == [unlaned]
    assert [job.id for job in claimed("test.other")] == [child]


def test_a_claim_number_that_is_behind_its_attempts_could_not_be_settled(run_jobs, clock) -> None:
    id = change(enqueue(Working, {"do": "raise"}))
    _attempt(id, 1)
    with pytest.raises(IntegrityError), transaction.atomic():
        run_jobs("test.work")
    assert fsck("--fix")[0] == 0
    Job.objects.filter(pk=id, state="running").update(state="pending", lease_until=None)
    assert run_jobs("test.work") == 1
    assert set(Attempt.objects.values_list("claim_no", flat=True)) == {1, 2}


# --- what the database itself forbids -------------------------------------------------------------


def test_constraints_forbid_what_fsck_need_not_look_for() -> None:
    (event,) = publish(NewEvent(Happened, {"who": "w"}))
    enqueue(Working, unique_key="k")
    other, job = enqueue(Working), enqueue(Working)
    log = Job.objects.get(event=event.id, handler="test.log").pk
    _attempt(job, 1)
    slot = _slot()
    for refused in (
        lambda: change(other, event_id=event.id, handler="test.log"),
        lambda: change(other, unique_key="k"),
        lambda: change(log, priority=7),
        lambda: change(log, attempt=-1),
        lambda: change(log, state=None),
        lambda: _attempt(job, 1),
        lambda: _queue("test.work", rate_limit=-1),
        lambda: sql("INSERT INTO jobs_slot SELECT * FROM jobs_slot WHERE id = %s", slot),
    ):
        with pytest.raises(DatabaseError), transaction.atomic():
            refused()


# --- the command ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--kind", "jobs.no_lan"], "did you mean 'jobs.no_lane'"),
        (["--since", "yesterday"], "--since 'yesterday' is no duration, such as 2h or 7d"),
        (["--since", "0h"], "is no duration"),
        (["--show", "-1"], "not below 0"),
    ],
)
def test_wrong_arguments_end_with_2(arguments: list[str], words: str) -> None:
    with pytest.raises(CommandError) as wrong:
        call_command("fsck", *arguments)
    assert wrong.value.returncode == 2
    assert words in str(wrong.value)


def test_a_report_shows_some_ids_and_counts_all() -> None:
    made = [change(enqueue(Working), finished_at=ago(5)) for _ in range(15)]
    text = fsck("--show", "3")[1]
    assert "jobs.unfinished_with_time: 15 found" in text
    assert f"  {made[0]}, {made[1]}, {made[2]} and 12 more" in text


def test_the_kinds_are_listed() -> None:
    status, text = fsck("--list")
    assert (status, len(text.splitlines())) == (0, len(PLANTS))


def test_a_kind_that_cannot_be_checked_is_not_clean_and_hinders_no_other(monkeypatch) -> None:
    monkeypatch.setattr("jobs.fsck.of_queues.TokensCanBeSpent.condition", "1 / 0 = 1")
    _running(lease_until=None)
    status, text = fsck()
    assert status == 1
    assert "queues.tokens: not checked to the end: DataError: division by zero" in text
    assert "jobs.running_without_lease: 1 found" in text


def test_batches_reach_every_row(monkeypatch) -> None:
    monkeypatch.setattr("jobs.fsck.kind.BATCH", 4)
    made = [change(enqueue(Working), finished_at=ago(5)) for _ in range(10)]
    assert report("--show", "100")["jobs.unfinished_with_time"]["ids"] == made
