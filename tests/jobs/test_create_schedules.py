"""Schedules in bulk: created and changed by name, without a slot lost or doubled."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from tailrace.db.locks import Blocked
from tailrace.jobs.engine.maintenance.ticking import schedules
from tailrace.jobs.models import Schedule, Slot
from tailrace.jobs.operations.schedules import InvalidSchedule, NewSchedule, create_schedules
from tests.kit import at_once, held

pytestmark = pytest.mark.django_db


def new(name: str = "s", **fields: object) -> NewSchedule:
    fields = {"handler": "test.work", "owner": "tests"} | fields
    if "cron" not in fields:
        fields.setdefault("every_seconds", 60)
    return NewSchedule(name=name, **fields)  # type: ignore[arg-type]


def at(clock, text: str) -> datetime:
    moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    clock.step((moment - clock.now()).total_seconds())
    return moment


def test_many_are_created_in_few_statements(clock) -> None:
    rows = [new(f"s{n}", payload={"note": str(n)}, routing_key=str(n)) for n in range(500)]
    with CaptureQueriesContext(connection) as statements:
        assert create_schedules(rows) == 500
    assert len(statements) < 10
    row = Schedule.objects.get(name="s7")
    assert (row.payload["note"], row.routing_key, row.owner) == ("7", "7", "tests")
    ran = 0
    while some := schedules.run_due():  # a piece ends when its time is up
        ran += some
    assert ran == 500


def test_the_same_again_changes_nothing(clock) -> None:
    at(clock, "2027-01-01T12:00:00")
    rows = [new("a"), new("b", cron="0 8 * * *", time_zone="Europe/Berlin", spread=600)]
    create_schedules(rows)
    before = list(Schedule.objects.order_by("name").values())
    clock.step(30)
    assert create_schedules(reversed(rows)) == 0
    assert list(Schedule.objects.order_by("name").values()) == before


def test_what_it_does_changes_and_its_next_slot_does_not(clock) -> None:
    create_schedules([new(spread=30)])
    due, enabled = Schedule.objects.get().next_run_at, Schedule.objects.update(enabled=False)
    clock.step(7)
    assert create_schedules([new(spread=30, handler="test.fair", owner="others")]) == enabled == 1
    row = Schedule.objects.get()
    assert (row.handler, row.owner, row.next_run_at, row.enabled) == (
        "test.fair",
        "others",
        due,
        False,
    )


@pytest.mark.parametrize(
    ("before", "ran_until", "after", "then"),
    [
        # Nothing has come: all slots from now on are of the new timing.
        ({"cron": "0 8 * * *"}, "07:00:00", {"cron": "0 9 * * *"}, "09:00:00"),
        ({"cron": "0 8 * * *"}, "08:30:00", {"cron": "0 8,10 * * *"}, "10:00:00"),
        # A slot that is due and did not run yet is kept.
        ({"cron": "0 8 * * *"}, "07:59:00", {"cron": "0 9 * * *"}, "08:00:00"),
        # Its nominal time has come, and its offset not yet.
        ({"cron": "0 8 * * *", "spread": 3600}, "08:05:00", {"cron": "0 9 * * *"}, "08:00:00"),
        # It ran, and would come again with the longer offset.
        ({"cron": "0 8 * * *", "spread": 60}, "08:05:00", {"cron": "0 8 * * *", "spread": 3600},
         "next day"),
        # An interval begins at the slot that was planned, or sooner if it is shorter.
        ({"every_seconds": 3600}, "08:00:00", {"every_seconds": 86400}, "08:30:00"),
        ({"every_seconds": 3600}, "08:00:00", {"every_seconds": 60}, "08:01:30"),
    ],
)  # fmt: skip
def test_a_change_of_timing_loses_and_doubles_no_slot(
    clock, before: dict, ran_until: str, after: dict, then: str
) -> None:
    at(clock, "2027-03-01T07:30:00")
    create_schedules([new(**before)])
    at(clock, f"2027-03-01T{ran_until}")
    schedules.run_due()
    if then == "08:00:00" and "spread" not in before:
        clock.step(70)
    if "every_seconds" in before:
        clock.step(30)
    create_schedules([new(**after)])
    row = Schedule.objects.get()
    nominal = row.next_run_at - row.offset
    assert f"{nominal:%H:%M:%S}" == then if then != "next day" else nominal.day == 2


def test_each_schedule_keeps_its_own_place_in_the_spread(clock) -> None:
    at(clock, "2027-01-01T23:00:00")
    create_schedules(new(f"s{n}", cron="0 0 * * *", spread=3600) for n in range(400))
    midnight = datetime(2027, 1, 2, tzinfo=UTC)
    times = [row.next_run_at - midnight for row in Schedule.objects.order_by("id")]
    assert all(timedelta() <= time < timedelta(hours=1) for time in times)
    quarters = [sum(n * 900 <= time.total_seconds() < (n + 1) * 900 for time in times)
                for n in range(4)]  # fmt: skip
    assert min(quarters) > 60
    Schedule.objects.all().delete()
    create_schedules(new(f"s{n}", cron="0 0 * * *", spread=3600) for n in range(400))
    assert [row.next_run_at - midnight for row in Schedule.objects.order_by("id")] == times


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"handler": "test.wrok"}, "did you mean"),
        ({"handler": "test.work", "payload": {"note": []}}, "payload.note"),
        ({"cron": "every day"}, "'every day' is not a cron expression"),
        ({"cron": "0 8 * * *", "time_zone": "Moon/Base"}, "is not a time zone; an example"),
        ({"cron": "0 8 * * *", "every_seconds": 5}, "either every_seconds"),
        ({"every_seconds": None}, "either every_seconds"),
        ({"every_seconds": float("nan")}, "nan is not between"),
        ({"every_seconds": 1e300}, "is not between 0.001 seconds"),
        ({"spread": -1.0}, "-1.0 is not between 0"),
        ({"spread": float("inf")}, "inf is not between 0"),
        ({"catch_up": "some"}, "it must be one of latest, all, skip"),
        ({"routing_key": "k" * 601}, "routing_key has 601 characters; at most 600"),
        ({"name": "n" * 601}, "name has 601 characters"),
        ({"name": ""}, "name is empty"),
        ({"name": "a\0"}, "NUL"),
        ({"owner": "code"}, "reserved for schedules that handlers declare"),
    ],
)
def test_an_invalid_schedule_is_refused_and_none_is_created(fields: dict, words: str) -> None:
    with pytest.raises(InvalidSchedule, match="schedule") as error, transaction.atomic():
        create_schedules([new("a"), new(**fields)])
    assert words in str(error.value)
    assert not Schedule.objects.filter(owner="tests").exists()


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="'a': two schedules have this name"):
        create_schedules([new("a"), new("b"), new("a")])


def test_a_schedule_of_the_code_is_not_taken_over() -> None:
    Schedule.objects.create(name="mine", handler="test.work", every_seconds=60, owner="code")
    with (
        pytest.raises(InvalidSchedule, match="'mine' is declared by a handler"),
        transaction.atomic(),
    ):
        create_schedules([new("a"), new("mine")])
    assert Schedule.objects.get(handler="test.work").owner == "code"


@pytest.mark.django_db(transaction=True)
def test_two_processes_create_the_same_at_once() -> None:
    """Each gives them in another order, and some only; none waits for the other in vain."""
    names = [f"s{n:02}" for n in range(60)]

    def create(number: int) -> int:
        mine = names[::-1] if number % 2 else names[number:]
        return create_schedules(new(name, owner=f"o{number}") for name in mine)

    at_once(4, create)
    assert (
        sorted(Schedule.objects.filter(owner__startswith="o").values_list("name", flat=True))
        == names
    )
    assert schedules.run_due() == 60
    assert Slot.objects.count() == 60


@pytest.mark.django_db(transaction=True)
def test_a_row_that_somebody_holds_is_waited_for_and_then_named(monkeypatch) -> None:
    monkeypatch.setattr("tailrace.db.locks.WAIT_SECONDS", 0.2)
    create_schedules([new("a"), new("b")])
    with (
        held("SELECT 1 FROM tailrace_jobs_schedule WHERE name = 'b' FOR UPDATE"),
        pytest.raises(Blocked, match="2 schedules from 'a' to 'b'"),
        transaction.atomic(),
    ):
        create_schedules([new("a", every_seconds=5), new("b", every_seconds=5)])
    assert Schedule.objects.get(name="a").every_seconds == 60


def test_the_callers_limits_hold_again_afterwards() -> None:
    def limits() -> tuple[str, str]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('statement_timeout'),"
                           " current_setting('lock_timeout')")  # fmt: skip
            return cursor.fetchone()

    before = limits()
    create_schedules([new("a"), new("b")])
    create_schedules([new("a", every_seconds=7)])
    assert limits() == before


def test_the_next_slot_may_be_given_for_a_new_timing_and_only_for_that(clock) -> None:
    now = at(clock, "2027-01-01T12:00:00")
    soon, later = now + timedelta(minutes=5), now + timedelta(minutes=9)
    create_schedules([new(cron="0 8 * * *", next_run_at=soon)])
    assert Schedule.objects.get().next_run_at == soon
    create_schedules([new(cron="0 8 * * *", next_run_at=later, payload={"note": "other"})])
    assert Schedule.objects.get().next_run_at == soon
    create_schedules([new(cron="0 9 * * *", next_run_at=later)])
    assert Schedule.objects.get().next_run_at == later


def test_a_schedule_knows_its_last_run(clock) -> None:
    at(clock, "2027-01-01T12:00:00")
    create_schedules([new()])
    assert Schedule.objects.get().last_run_at is None
    due = Schedule.objects.get().next_run_at
    schedules.run_due()
    assert Schedule.objects.get().last_run_at == due
    clock.step(60)
    schedules.run_due()  # the first job is still live: merged
    assert Schedule.objects.get().last_run_at == due
