"""Schedules: declared ones and those of operators; slots and sweep runs are read-only."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from pydantic import BaseModel

from tailrace.db import clock
from tailrace.jobs.handler import Handler
from tailrace.jobs.models import Schedule, Slot, SweepRun
from tailrace.jobs.testing.clock import Clock
from tests.jobs import operators

pytestmark = pytest.mark.django_db
SCHEDULES = "/admin/tailrace_jobs/schedule/"
RIGHTS = [f"tailrace_jobs.{verb}_schedule" for verb in ("view", "add", "change", "delete")]


class Ring(Handler):
    """Ring a bell."""

    name = "operators.ring"

    class Payload(BaseModel):
        times: int

    def handle(self, job: object) -> None:
        return None


@pytest.fixture(autouse=True)
def _handlers() -> None:
    operators.register_handlers()


@pytest.fixture
def operator() -> Client:
    return operators.client("operator", *RIGHTS, "tailrace_jobs.view_job_payload")


def _form(**fields: str) -> dict[str, str]:
    form = {"name": "bells", "handler": "operators.ring", "payload": '{"times": 3}'}
    form |= {"cron": "0 8 * * *", "time_zone": "UTC", "catch_up": "latest", "enabled": "on"}
    return form | fields


def test_an_operator_adds_a_schedule(operator: Client) -> None:
    response = operator.post(SCHEDULES + "add/", _form())
    assert response.status_code == 302
    schedule = Schedule.objects.get(name="bells")
    assert (schedule.owner, schedule.payload) == ("operator", {"times": 3})
    assert clock.now() < schedule.next_run_at <= clock.now() + timedelta(days=1)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"cron": "every day"}, "is not a cron expression"),
        ({"time_zone": "Moon/Base"}, "is not a time zone"),
        ({"cron": ""}, "set either every_seconds"),
        ({"every_seconds": "5"}, "set either every_seconds"),
        ({"payload": '{"times": "many"}'}, "invalid payload for"),
        ({"handler": "operators.gone"}, "is not one of the available choices"),
    ],
)
def test_a_wrong_schedule_is_refused_with_the_reason(
    operator: Client, fields: dict[str, str], words: str
) -> None:
    response = operator.post(SCHEDULES + "add/", _form(**fields))
    assert words in response.content.decode()
    assert not Schedule.objects.filter(name="bells").exists()


def test_a_declared_schedule_can_only_be_disabled(operator: Client) -> None:
    mine = Schedule.objects.create(
        name="code's", handler="operators.ring", every_seconds=60, owner="code"
    )
    address = f"{SCHEDULES}{mine.pk}/"
    assert operator.get(address + "delete/").status_code == 403
    assert (
        operator.post(address + "change/", {"every_seconds": "1", "name": "x"}).status_code == 302
    )
    mine.refresh_from_db()
    assert (mine.enabled, mine.every_seconds, mine.name) == (False, 60, "code's")


def test_many_schedules_cannot_be_deleted_at_once(operator: Client) -> None:
    mine = Schedule.objects.create(
        name="code's", handler="operators.ring", every_seconds=60, owner="code"
    )
    form = {"action": "delete_selected", "_selected_action": [mine.pk], "index": 0, "post": "yes"}
    operator.post(SCHEDULES, form)
    assert Schedule.objects.filter(pk=mine.pk).exists()


def test_a_schedule_shows_its_last_slots_with_their_outcomes(operator: Client) -> None:
    schedule = Schedule.objects.create(name="bells", handler="operators.ring", every_seconds=60)
    for n in range(30):
        Slot.objects.create(
            schedule=schedule,
            at=clock.now() - timedelta(hours=n),
            outcome="merged",
            reason=f"r{n}.",
        )
    page = operator.get(f"{SCHEDULES}{schedule.pk}/change/").content.decode()
    assert "r19." in page
    assert "r20." not in page
    Schedule.objects.create(name="newer", handler="operators.newer", every_seconds=60)
    listed = operator.get(SCHEDULES).content.decode()
    assert "merged" in listed
    assert listed.count("this code does not have its handler") == 1


def test_a_list_of_many_is_searched_by_the_start_of_a_name_or_owner_and_counts_nothing(
    operator: Client, django_assert_max_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    Schedule.objects.bulk_create(
        Schedule(name=f"{n}:renew", handler="operators.ring", every_seconds=60, owner=f"plan:{n}")
        for n in range(120)
    )

    def names(address: str) -> list[str]:
        return [row.name for row in operator.get(SCHEDULES + address).context["cl"].result_list]

    with django_assert_max_num_queries(14) as statements:
        assert names("")[0] == "119:renew"
    assert not [
        each for each in statements if "COUNT(" in each["sql"] and "schedule" in each["sql"]
    ]
    assert names("?q=plan:11") == [f"{n}:renew" for n in (*range(119, 109, -1), 11)]
    assert names("?q=7:") == ["7:renew"]
    assert names("?q=renew") == names("?q=%25") == []
    assert names("?enabled=no") == []


def test_a_spread_is_set_and_keeps_the_slot_that_is_due(operator: Client) -> None:
    before = clock.now()
    operator.post(SCHEDULES + "add/", _form(spread="7200"))
    row = Schedule.objects.get(name="bells")
    assert row.spread == 7200
    assert row.next_run_at in (row.first_slot(before), row.first_slot(clock.now()))
    Schedule.objects.update(next_run_at=clock.now() - timedelta(days=1) + row.offset)
    operator.post(f"{SCHEDULES}{row.pk}/change/", _form(name="chimes", spread=""))
    row.refresh_from_db()
    assert (row.name, row.spread) == ("chimes", 0)
    assert clock.now() - timedelta(days=1, minutes=1) < row.next_run_at < clock.now()


def test_a_slot_whose_time_had_come_before_the_schedule_was_added_is_not_run(
    operator: Client, clock: Clock
) -> None:
    now = clock.now()
    eight = now.replace(hour=8, minute=0, second=0, microsecond=0)
    clock.step((eight + timedelta(days=1, minutes=1) - now).total_seconds())
    operator.post(SCHEDULES + "add/", _form(spread="7200"))
    row = Schedule.objects.get(name="bells")
    assert row.offset > timedelta(minutes=5), "today's slot would be still to come"
    assert row.next_run_at == eight + timedelta(days=2) + row.offset


def test_slots_of_a_schedule_that_was_removed_are_listed(operator: Client) -> None:
    schedule = Schedule.objects.create(name="bells", handler="operators.ring", every_seconds=60)
    slot = Slot.objects.create(schedule=schedule, at=clock.now(), outcome="merged")
    reader = operators.client("reader", "tailrace_jobs.view_slot", "tailrace_jobs.view_schedule")
    assert "bells" in reader.get("/admin/tailrace_jobs/slot/").content.decode()
    operator.post(f"{SCHEDULES}{schedule.pk}/delete/", {"post": "yes"})
    assert not Schedule.objects.exists()
    for address in ("/admin/tailrace_jobs/slot/", f"/admin/tailrace_jobs/slot/{slot.pk}/change/"):
        assert f"{schedule.pk} (deleted)" in reader.get(address).content.decode()


def test_staff_without_the_permission_see_no_schedule() -> None:
    client = operators.client("nobody")
    assert client.get(SCHEDULES).status_code == 403
    assert client.get(SCHEDULES + "add/").status_code == 403


def test_sweep_runs_are_filtered() -> None:
    repaired = SweepRun.objects.create(invariant="jobs.lease_ended", outcome="checked", found=3)
    error = SweepRun.objects.create(invariant="jobs.unknown_handler", outcome="error", error="dark")
    client = operators.client("reader", "tailrace_jobs.view_sweeprun")

    def runs(query: str) -> set[int]:
        answer = client.get("/admin/tailrace_jobs/sweeprun/" + query)
        return {row.pk for row in answer.context["cl"].result_list}

    assert runs("?invariant=jobs.lease_ended") == runs("?found=some") == {repaired.pk}
    assert runs("?outcome=error") == {error.pk}
    page = client.get(f"/admin/tailrace_jobs/sweeprun/{repaired.pk}/change/").content.decode()
    assert "No running job has a lease that ended long ago." in page
    assert "find out why the tick did not rescue the job" in page


@pytest.mark.parametrize("model", ["slot", "sweeprun"])
def test_records_are_read_only(model: str) -> None:
    rights = [f"tailrace_jobs.{verb}_{model}" for verb in ("view", "add", "change", "delete")]
    client = operators.client("eager", *rights)
    assert client.get(f"/admin/tailrace_jobs/{model}/").status_code == 200
    assert client.get(f"/admin/tailrace_jobs/{model}/add/").status_code == 403
