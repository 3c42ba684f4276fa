"""A finding is announced once: also if a worker is killed, if two workers store at once, and if a
job is lost."""

from contextlib import suppress
from datetime import timedelta
from threading import Thread

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import DatabaseError, connections

from tailrace.db.query import database_now, query
from tailrace.domains.protection.alerts.raising import NOTIFICATIONS
from tailrace.domains.protection.invariants import FindingsAreAnnounced, NoticesAreSent
from tailrace.domains.protection.models import Alert, AlertPause, Breach, Exposure, Severity
from tailrace.domains.protection.services.announcing import announce_due
from tailrace.domains.protection.services.providers.source import FoundBreach
from tailrace.domains.protection.services.scanning.results import LookupResult, store
from tailrace.domains.protection.services.watchlist import items
from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tailrace.web.accounts.deletion import delete_account
from tests.kit import at_once, held, wait_until
from tests.protection.kit import items_of

pytestmark = pytest.mark.django_db(transaction=True)
SOURCE = "hibp_breaches"


@pytest.fixture
def ann() -> User:
    user = User.objects.create_user("ann", "ann@example.test")
    for text in ("ann", "anna"):
        items.add(user.pk, "username", text)
    return user


def answer(user: User, *names: str, item: int = 0, lost: str = "Passwords") -> None:
    """Store a source's answer for a watched value of the user."""
    breaches = [FoundBreach(name, name, data_classes=(lost,)) for name in names]
    row = items_of(user)[item]
    async_to_sync(store)(LookupResult(row.pk, SOURCE, database_now(), breaches))


def named() -> list[str]:
    """Return the leaks that notices named, each as often as it was named."""
    events = Event.objects.filter(type__startswith="protection.alert").order_by("id")
    return sorted(name for event in events for name in event.payload["details"]["breaches"])


def kill_who_waits(table: str) -> None:
    """End the session that waits for a lock of the table, as the death of its worker does."""
    found = wait_until(
        lambda: query(
            "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            " AND query LIKE %(table)s AND datname = current_database()"
            " AND pid <> pg_backend_pid()",
            table=f"%{table}%",
        ),
        what=f"a session that waits for {table}",
    )
    query("SELECT pg_terminate_backend(%(pid)s, 5000)", pid=found[0][0])


def killed(work: object, table: str, lock: str, *params: object) -> None:
    """Call `work` in a thread whose session is ended while it waits for a lock of the table."""

    def run() -> None:
        with suppress(DatabaseError):
            work()  # type: ignore[operator]
        connections.close_all()

    with held(lock, *params):
        thread = Thread(target=run)
        thread.start()
        kill_who_waits(table)
        thread.join(30)
        assert not thread.is_alive()


def test_a_worker_that_dies_between_storing_and_raising_has_stored_nothing(
    ann, run_jobs, clock
) -> None:
    answer(ann, "Acme")
    announce_due(ann.pk)
    clock.step(61)
    pauses = "SELECT 1 FROM tailrace_protection_alertpause FOR UPDATE"
    killed(lambda: answer(ann, "Phony", item=1), "alertpause", pauses)
    assert Exposure.objects.count() == 1
    for _ in range(2):  # the job runs again
        answer(ann, "Phony", item=1)
        run_jobs(NOTIFICATIONS)
    assert named() == ["Acme", "Phony"]
    assert not Exposure.objects.filter(announced_at=None).exists()


def test_a_worker_that_dies_while_it_announces_is_repeated_once(ann, run_jobs) -> None:
    answer(ann, "Acme")
    events = "LOCK TABLE tailrace_protection_exposure IN SHARE ROW EXCLUSIVE MODE"
    killed(lambda: announce_due(ann.pk), "tailrace_protection_exposure", events)
    assert named() == []
    assert Exposure.objects.filter(announced_at=None).count() == 1
    for _ in range(2):
        announce_due(ann.pk)
    assert named() == ["Acme"]


def test_two_workers_store_while_others_announce(ann, clock) -> None:
    names = [f"leak {number}" for number in range(12)]
    answer(ann, "first")

    def work(number: int) -> None:
        if number % 3 == 2:
            announce_due(ann.pk)
        else:
            answer(ann, *names[number % 12 : number % 12 + 2], item=number % 2)

    at_once(12, work)
    clock.step(61)
    announce_due(ann.pk)
    found = Exposure.objects.values_list("breach__name", flat=True).distinct()
    assert set(named()) == set(found)
    assert not Exposure.objects.filter(announced_at=None).exists()
    assert Alert.objects.count() == 1
    announced = Event.objects.filter(type="protection.alert_raised")
    exposures = sum(event.payload["details"]["exposures"] for event in announced)
    assert exposures == Exposure.objects.count(), "each exactly once"


def test_an_exposure_that_becomes_worse_while_it_waits_is_announced_as_it_is_then(
    ann, clock
) -> None:
    answer(ann, "Acme", lost="Email addresses")
    announce_due(ann.pk)
    answer(ann, "Nums", lost="Usernames")
    announce_due(ann.pk)
    assert named() == ["Acme"]
    answer(ann, "Nums", lost="Passwords")
    announce_due(ann.pk)
    assert named() == ["Acme", "Nums"]
    clock.step(86_500)
    announce_due(ann.pk)
    assert named() == ["Acme", "Nums"]


def test_a_value_that_is_removed_meanwhile_is_not_named(ann, clock) -> None:
    answer(ann, "Acme")
    announce_due(ann.pk)
    answer(ann, "Handles", item=1, lost="Usernames")
    items_of(ann)[1].delete()
    clock.step(86_500)
    assert announce_due(ann.pk) == 0
    assert named() == ["Acme"]
    assert not Alert.objects.filter(notice_at__isnull=False).exists()


def test_a_lost_job_is_found_and_its_notice_sent(ann, run_jobs, clock) -> None:
    answer(ann, "Acme")
    Job.objects.filter(handler=NOTIFICATIONS).delete()
    check = NoticesAreSent()
    assert list(check.find()) == []
    Alert.objects.update(raised_at=database_now() - timedelta(minutes=11))
    found = list(check.find())
    assert found == list(Alert.objects.values_list("pk", flat=True))
    assert check.repair(found) == 1
    run_jobs(NOTIFICATIONS)
    assert named() == ["Acme"]
    assert list(check.find()) == []


def test_an_exposure_that_nobody_was_told_of_is_found_and_announced(ann, run_jobs, clock) -> None:
    """As a program from before the upgrade leaves it that runs during the upgrade."""
    breach = Breach.objects.create(source=SOURCE, name="Acme", title="Acme")
    row = Exposure.objects.create(
        user=ann, item=items_of(ann)[0], breach=breach, severity=Severity.WARNING
    )
    check = FindingsAreAnnounced()
    assert list(check.find()) == [], "it may be raised at any moment"
    clock.step(700)
    found = list(check.find())
    assert [id for _type, id in found] == [row.pk]
    assert check.repair(found) == 1
    assert list(check.find()) == []
    run_jobs(NOTIFICATIONS)
    assert named() == ["Acme"]
    # One whose notice was forgotten, within the pause of its alert.
    Exposure.objects.update(announced_at=None)
    found = list(check.find())
    assert len(found) == 1
    check.repair(found)
    run_jobs(NOTIFICATIONS)
    assert named() == ["Acme", "Acme"]
    assert list(check.find()) == []


def test_exposures_that_wait_for_the_end_of_the_pause_are_no_violation(ann, clock) -> None:
    answer(ann, "Acme")
    announce_due(ann.pk)
    answer(ann, "Handles", item=1, lost="Usernames")
    clock.step(3600)
    assert list(FindingsAreAnnounced().find()) == []
    assert list(NoticesAreSent().find()) == []


def test_critical_leaks_of_one_scan_are_one_further_notice(ann, clock) -> None:
    """The values are stored one by one; a mail for each would be a flood."""
    answer(ann, "Acme")
    announce_due(ann.pk)
    for name in ("Phony", "Third", "Fourth"):
        clock.step(5)
        answer(ann, name, item=1)
        announce_due(ann.pk)
    assert named() == ["Acme"]
    clock.step(50)
    announce_due(ann.pk)
    assert named() == ["Acme", "Fourth", "Phony", "Third"]
    assert Event.objects.filter(type="protection.alert_raised").count() == 2


def test_the_events_of_further_notices_are_erased_with_the_account(ann, clock) -> None:
    answer(ann, "Acme")
    announce_due(ann.pk)
    clock.step(61)
    answer(ann, "Phony")
    announce_due(ann.pk)
    User.objects.filter(pk=ann.pk).update(is_active=False)
    assert delete_account(ann.pk)
    events = Event.objects.filter(type="protection.alert_raised")
    assert [set(event.payload) for event in events] == [{"alert"}, {"alert"}]


def test_findings_of_an_alert_that_was_raised_before_the_upgrade_get_a_new_one(ann) -> None:
    about = {"user": ann, "kind": "exposure", "source": SOURCE, "severity": Severity.CRITICAL}
    AlertPause.objects.create(**about, until=database_now() + timedelta(hours=9))
    Alert.objects.create(**about, announced_at=database_now(), details={"breaches": ["Old"]})
    answer(ann, "Acme")
    announce_due(ann.pk)
    assert named() == ["Acme"]
