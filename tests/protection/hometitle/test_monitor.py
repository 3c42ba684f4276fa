"""Monitoring: change feeds of public records, and the scans of the accounts concerned."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django.fixtures import Settings

from tailrace.domains.protection.handlers import hometitle
from tailrace.domains.protection.models import DeedFeed, WatchedProperty
from tailrace.domains.protection.services.properties.places import address_of, lot_of
from tailrace.domains.protection.services.providers import soda as provider
from tailrace.jobs.engine.maintenance import sync_declared
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job, Schedule
from tailrace.subscriptions.models import PlanSubscription
from tailrace.subscriptions.plans import status
from tests.protection.hometitle.kit import MONITOR, SCAN, add, changes, now, premium
from tests.servers.soda import LEGALS, MASTER, PARTIES, SodaServer
from tests.servers.web import Response
from tests.subscriptions.sample_domain import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def look(run_jobs: Callable[..., int]) -> Callable[[], Job]:
    """Return `look()`: it looks at the feeds once, and returns the job as it has ended."""

    def look_now() -> Job:
        job = Job.objects.get(pk=enqueue(MONITOR))
        run_jobs(MONITOR)
        return now(job)

    return look_now


@pytest.fixture
def watched(soda: SodaServer, ann: User, scan: Any, look: Any) -> SodaServer:
    """A lot and an address, scanned once, and feeds that were looked at once."""
    soda.deed("2020", ["SMITH, JOHN"], ["DOE, JANE"])
    add(ann)
    add(ann, address_of(1, "5", "Wall St"))
    scan(ann)
    look()
    soda.requests.clear()
    return soda


def scans() -> list[dict[str, Any]]:
    """Return the payloads of the scans that wait."""
    rows = Job.objects.filter(handler=SCAN, state="pending").order_by("pk")
    return [row.payload for row in rows]


def test_it_is_scheduled_every_five_minutes_once_its_server_is_set(settings: Settings) -> None:
    assert not Schedule.objects.filter(handler=MONITOR).exists()
    settings.PROTECTION_SODA_URL = "https://records.example.org"
    sync_declared.sync()
    assert Schedule.objects.get(handler=MONITOR).every_seconds == 300


def test_without_monitored_properties_nothing_is_asked(
    soda: SodaServer, ann: User, look: Callable[[], Job]
) -> None:
    assert look().state == "skipped"
    assert soda.requests == []


def test_the_first_look_only_notes_where_to_begin(watched: SodaServer) -> None:
    assert scans() == []
    assert DeedFeed.objects.get(name="acris:master").position["document"] == "2020"


def test_what_is_unchanged_is_answered_by_304(watched: SodaServer, look: Callable[[], Job]) -> None:
    look()
    watched.requests.clear()
    look()
    assert watched.datasets() == [MASTER, LEGALS, PARTIES]
    for request in list(watched.requests):
        assert "if-none-match" in request.headers
        assert "if-modified-since" in request.headers
        assert watched.respond(request).status == 304


def test_a_new_deed_is_noticed_within_minutes(
    watched: SodaServer, ann: User, look: Callable[[], Job], run_jobs: Callable[..., int]
) -> None:
    watched.deed("2021", ["THIEF, TOM"], ["SMITH, JOHN"], recorded="2021-05-01")
    look()
    [payload] = scans()
    given = {key: value for key, value in payload.items() if value not in (None, 0, [])}
    assert given == {"account": ann.pk, "concerned": True}
    watched.requests.clear()
    run_jobs(SCAN)
    assert changes() == [("ownership_transfer", "critical", "2021")]
    assert watched.datasets().count(LEGALS) == 1, "the other property is not concerned"
    assert not WatchedProperty.objects.filter(concerned_at__isnull=False).exists()
    look()
    assert scans() == []


def test_parties_that_come_after_their_deed_are_noticed_within_minutes(
    watched: SodaServer, look: Callable[[], Job], run_jobs: Callable[..., int]
) -> None:
    watched.deed("2021", [], recorded="2021-05-01")
    look()
    run_jobs(SCAN)
    assert changes() == [("deed_change", "warning", "2021")]
    watched.rename_parties("2021", 2, "THIEF, TOM", published="2021-05-02")
    look()
    run_jobs(SCAN)
    assert ("ownership_transfer", "critical", "2021") in changes()


def test_an_address_is_concerned_in_any_spelling(
    watched: SodaServer, ann: User, look: Callable[[], Job]
) -> None:
    watched.deed(
        "2021", ["A"], borough=1, block=99, number="5", street="WALL STREET", recorded="2021-05-01"
    )
    look()
    assert len(scans()) == 1
    [row] = WatchedProperty.objects.filter(concerned_at__isnull=False)
    assert row.street_name == "WALL STREET"


def test_other_lots_plans_and_accounts_are_left_alone(
    watched: SodaServer, look: Callable[[], Job]
) -> None:
    watched.deed("2021", ["A"], block=77, recorded="2021-05-01")
    look()
    assert scans() == []
    status.cancel([PlanSubscription.objects.get().pk])
    premium(person("bob"))
    add(User.objects.get(username="bob"), lot_of(3, 1, 1))
    watched.deed("2022", ["A"], recorded="2022-05-01")
    look()
    assert scans() == []


def test_many_changes_are_read_in_pieces_and_none_is_lost(
    watched: SodaServer, ann: User, look: Callable[[], Job], monkeypatch: pytest.MonkeyPatch,
    run_jobs: Callable[..., int], clock: Any,
) -> None:  # fmt: skip
    monkeypatch.setattr(provider, "PAGE_ROWS", 7)
    monkeypatch.setattr(hometitle, "PAGES", 2)
    rows = [add(ann, lot_of(3, 100 + number, 20)) for number in range(40)]
    for number in range(40):
        watched.deed(f"2021{number:04d}", ["A"], block=100 + number, recorded="2021-05-01")
    job = look()
    assert job.state == "pending"
    assert job.attempt == 0
    for _ in range(20):
        clock.step(2)
        run_jobs(MONITOR)
    assert now(job).state == "completed"
    concerned = WatchedProperty.objects.filter(concerned_at__isnull=False)
    assert set(concerned.values_list("pk", flat=True)) == {row.pk for row in rows}
    assert len(scans()) == 1, "one job for the account, which reads what is concerned"


def test_a_feed_that_is_away_is_tried_again_and_loses_nothing(
    watched: SodaServer, look: Callable[[], Job], run_jobs: Callable[..., int], clock: Any
) -> None:
    watched.deed("2021", ["A"], recorded="2021-05-01")
    watched.before = lambda request: Response(500)
    job = look()
    assert (job.state, job.attempt) == ("pending", 1)
    watched.before = lambda request: None
    clock.step(100)
    run_jobs(MONITOR)
    assert now(job).state == "completed"
    assert len(scans()) == 1


def test_a_feed_that_nobody_read_for_days_begins_anew(
    watched: SodaServer, look: Callable[[], Job], clock: Any
) -> None:
    watched.deed("2021", ["A"], recorded="2021-05-01")
    clock.step(3 * 86_400)
    look()
    assert scans() == [], "the daily scans have read it"
    assert DeedFeed.objects.get(name="acris:master").position["document"] == "2021"
