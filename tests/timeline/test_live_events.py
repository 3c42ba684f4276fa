"""What follows from points that come into a timeline: events, names of places."""

import sys
from datetime import UTC, datetime, timedelta

import pytest

from tailrace.domains.timeline.imports import decisions
from tailrace.domains.timeline.invariants import PointsAreAnnounced
from tailrace.domains.timeline.models import Device, Place
from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tailrace.web.accounts.deletion import request_deletion
from tests.kit import at_once
from tests.timeline.kit import START, gpx, track, upload, visible
from tests.web.program import Program, program
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db
ANNOUNCE, NAME = "timeline.announce_points", "timeline.name_places"


@pytest.fixture
def ann() -> Program:
    return program("ann")


def send(who: Program, count: int, first: int = 0, lat: float = 52.4, device: str = "") -> None:
    points = [
        {"lat": lat, "lon": 13.06, "recorded_at": (START + timedelta(seconds=n)).isoformat()}
        for n in range(first, first + count)
    ]
    answer = who.post("/points", {"points": points, "device": device})
    assert answer.status_code == 200, answer.content


def announced() -> list[int]:
    """Return the number of points of each event."""
    events = Event.objects.filter(type="timeline.points_added").order_by("pk")
    return [payload["count"] for payload in events.values_list("payload", flat=True)]


def test_three_points_in_five_seconds_are_one_event(ann, run_jobs, clock) -> None:
    for n in (2, 0, 1):
        send(ann, 1, first=n)
        clock.step(1)
    send(ann, 2)  # known ones
    assert visible(ann.user) == 3, "they are seen at once"
    run_jobs(ANNOUNCE)
    assert announced() == []
    clock.step(3)
    run_jobs(ANNOUNCE)
    assert announced() == [3]
    event, device = Event.objects.get(type="timeline.points_added"), Device.objects.get()
    assert (event.subject, event.actor) == (f"device/{device.pk}", "")
    assert event.payload["user_id"] == ann.user.pk
    times = [datetime.fromisoformat(event.payload[name]) for name in ("first_at", "last_at")]
    assert times == [START, START + timedelta(seconds=2)]
    clock.step(10)
    run_jobs(ANNOUNCE)
    assert announced() == [3]
    send(ann, 1, first=3)
    send(ann, 1, device="watch")
    clock.step(6)
    run_jobs(ANNOUNCE)
    assert announced() == [3, 1, 1], "each device has its own"


def test_a_thousand_points_are_announced_at_once(ann, run_jobs, clock) -> None:
    for n in range(12):
        send(ann, 100, first=100 * n)
    assert announced() == [1000]
    assert Job.objects.filter(handler=ANNOUNCE).count() == 1
    clock.step(6)
    run_jobs(ANNOUNCE)
    assert announced() == [1000, 200]


def test_no_event_has_more_than_a_thousand_points(ann, run_jobs, clock) -> None:
    for n in range(3):
        send(ann, 600, first=600 * n)
    clock.step(6)
    run_jobs(ANNOUNCE)
    assert announced() == [600, 600, 600]


@pytest.mark.django_db(transaction=True)
def test_points_that_come_while_others_are_announced(ann, run_jobs, clock) -> None:
    def work(number: int) -> None:
        for n in range(8):
            if number:
                send(Program(ann.user), 1, first=n * 10 + number)
            else:
                Job.objects.filter(handler=ANNOUNCE, state="pending").update(due_at=START)
                run_jobs(ANNOUNCE)

    at_once(4, work)
    clock.step(6)
    run_jobs(ANNOUNCE)
    assert sum(announced()) == visible(ann.user) == 24
    assert Device.objects.get().live_points == 24


def test_points_whose_job_was_cancelled_are_announced(ann, run_jobs, clock) -> None:
    invariant = PointsAreAnnounced()
    send(ann, 2)
    Job.objects.filter(handler=ANNOUNCE).update(state="cancelled")
    clock.step(60)
    assert list(invariant.find()) == []
    clock.step(90)
    [id] = invariant.find()
    assert invariant.repair([id]) == 1
    run_jobs(ANNOUNCE)
    assert (announced(), list(invariant.find())) == ([2], [])


def test_an_import_is_announced_once_when_it_is_promoted(ann, run_imports) -> None:
    row = upload(ann.user, gpx([*track(5), (None, 1.0, 2.0)]))
    run_imports()
    events = Event.objects.filter(type="timeline.import_promoted")
    assert not events.exists()
    decisions.promote_now(row.pk)
    run_imports()
    event = events.get()
    assert (event.subject, event.actor) == (f"import/{row.pk}", "")
    assert (event.payload["import_id"], event.payload["count"]) == (row.pk, 5)
    assert datetime.fromisoformat(event.payload["first_at"]) == START.astimezone(UTC)


def test_places_of_live_points_have_names(ann, run_jobs, clock) -> None:
    bob = program("bob")
    send(ann, 3)
    send(ann, 2, first=10, lat=-16.8)
    send(bob, 1, lat=-18.0)
    assert Job.objects.filter(handler=NAME).count() == 2
    clock.step(6)
    run_jobs(NAME)
    assert "Near Potsdam (DE)." in Visitor(ann.user).text("/timeline/days/2026-03-01")
    assert "Potsdam" not in Visitor(bob.user).text("/timeline/days/2026-03-01")
    zones = Place.objects.filter(device__user=ann.user).order_by("pk").values_list("time_zone")
    assert list(zones) == [("Europe/Berlin",), ("Africa/Luanda",)]
    send(ann, 100, first=100)
    assert Job.objects.filter(handler=NAME, state="pending").count() == 0, "no cell is new"


def test_places_wait_for_the_packages_with_names(ann, run_jobs, clock, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "tzfpy", None)
    send(ann, 1)
    clock.step(6)
    run_jobs(NAME)
    assert Place.objects.filter(is_named=False).count() == 1
    monkeypatch.undo()
    send(ann, 1, first=5, lat=52.5)
    clock.step(6)
    run_jobs(NAME)
    assert Place.objects.exclude(name="").count() == 2


def test_more_places_than_one_run_names(ann, run_jobs, clock, monkeypatch) -> None:
    monkeypatch.setattr("tailrace.domains.timeline.live.places.BATCH", 2)
    monkeypatch.setattr("tailrace.domains.timeline.live.places.MOST_BATCHES", 2)
    for n in range(9):
        send(ann, 1, first=n, lat=50 + n / 10)
    for unnamed in (5, 1, 0):
        clock.step(6)
        run_jobs(NAME)
        assert Place.objects.filter(is_named=False).count() == unnamed
    assert Place.objects.count() == 9


def test_nothing_of_it_stays_after_the_account(ann, run_jobs, run_imports, clock) -> None:
    send(ann, 2)
    row = upload(ann.user, gpx(track(5)))
    run_imports()
    decisions.promote_now(row.pk)
    run_imports()
    clock.step(6)
    run_jobs(ANNOUNCE, NAME)
    send(ann, 1, first=9)
    request_deletion(ann.user)
    run_jobs("web.delete_account", "timeline.discard")
    clock.step(6)
    run_jobs(ANNOUNCE, NAME)
    assert not Place.objects.exists()
    events = Event.objects.filter(source="timeline")
    payloads = sorted(tuple(payload) for payload in events.values_list("payload", flat=True))
    assert payloads == [("device_id",), ("import_id",)]
