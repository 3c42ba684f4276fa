"""Schedules are removed in bulk, with their jobs that have not begun."""

import pytest

from tailrace.jobs.engine.maintenance.ticking import schedules
from tailrace.jobs.models import Job, Schedule, Slot
from tailrace.jobs.operations import schedules as bulk
from tailrace.jobs.operations.schedules import NewSchedule, create_schedules, remove_schedules
from tests.kit import at_once, claimed

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _due() -> None:
    """Two schedules of each of three owners, and their first jobs."""
    create_schedules(
        NewSchedule(name=f"{owner}/{n}", handler="test.work", every_seconds=60, owner=owner)
        for owner in ("plan:1", "plan:17", "team:1")
        for n in range(2)
    )
    Schedule.objects.create(name="by-code", handler="test.work", every_seconds=60, owner="code")
    schedules.run_due()


def left() -> set[str]:
    return set(Schedule.objects.exclude(owner="code").values_list("name", flat=True))


def jobs_of(names: set[str], ids: dict[str, int]) -> set[str]:
    """Return the states of their jobs."""
    jobs = Job.objects.filter(schedule__in=[ids[name] for name in names])
    return set(jobs.values_list("state", flat=True))


@pytest.fixture
def ids(_due: None) -> dict[str, int]:
    return dict(Schedule.objects.exclude(owner="code").values_list("name", "id"))


@pytest.mark.parametrize(
    ("chosen", "gone"),
    [
        ({"names": ["plan:1/0", "team:1/1", "nobody", "by-code"]}, "plan:1/0 team:1/1"),
        ({"owner": "plan:1"}, "plan:1/0 plan:1/1"),
        ({"owner_prefix": "plan:"}, "plan:1/0 plan:1/1 plan:17/0 plan:17/1"),
        ({"owner_prefix": "c"}, ""),
        ({"owner": "%"}, ""),
        ({"names": []}, ""),
    ],
    ids=str,
)
@pytest.mark.parametrize("batch", [1, 1000])
def test_they_are_removed_and_their_jobs_cancelled(
    monkeypatch, ids: dict[str, int], chosen: dict, gone: str, batch: int
) -> None:
    monkeypatch.setattr(bulk, "BATCH", batch)
    removed = set(gone.split())
    assert remove_schedules(**chosen, reason="the plan ended") == len(removed)
    assert left() == set(ids) - removed
    assert jobs_of(removed, ids) <= {"cancelled"}
    assert jobs_of(left(), ids) == {"pending"}
    assert set(Job.objects.values_list("error", flat=True)) <= {"the plan ended", ""}
    assert Schedule.objects.filter(owner="code").exists()


def test_jobs_that_run_go_on_and_slots_stay() -> None:
    running = claimed("test.work", 3)
    slots = Slot.objects.count()
    remove_schedules(owner_prefix="plan:")
    for job in running:
        row = Job.objects.get(pk=job.id)
        assert (row.state, row.cancel_requested) == ("running", False)
    assert Slot.objects.count() == slots


def test_pending_jobs_stay_if_that_is_wanted() -> None:
    assert remove_schedules(owner="team:1", cancel_pending=False) == 2
    assert not Job.objects.filter(state="cancelled").exists()


@pytest.mark.parametrize(
    "chosen",
    [{}, {"owner": ""}, {"owner_prefix": ""}, {"names": "plan:1/0"}, {"names": [], "owner": "x"}],
    ids=str,
)
def test_all_are_never_removed_by_mistake(chosen: dict) -> None:
    with pytest.raises(ValueError, match="give exactly one of names"):
        remove_schedules(**chosen)


@pytest.mark.django_db(transaction=True)
def test_two_processes_remove_them_at_once_while_others_tick(clock, ids: dict[str, int]) -> None:
    """What is gone is gone with its jobs, also with those that the tick was making."""
    clock.step(60)

    def work(number: int) -> int:
        if number % 2:
            schedules.run_due()
            return 0
        return remove_schedules(owner_prefix="plan:")

    assert sum(at_once(4, work)) == 4
    assert jobs_of({name for name in ids if name.startswith("plan:")}, ids) == {"cancelled"}
