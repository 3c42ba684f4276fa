"""What happens to accounts, plans, properties and workers while a scan waits for its source."""

import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import connection

from tailrace.db.query import database_now
from tailrace.domains.protection.models import PropertySnapshot, WatchedProperty
from tailrace.domains.protection.services.properties import watch
from tailrace.domains.protection.services.properties.documents import Document, Reading
from tailrace.domains.protection.services.properties.places import lot_of
from tailrace.domains.protection.services.properties.save import save
from tailrace.jobs.models import Job
from tailrace.subscriptions.models import PlanSubscription
from tailrace.subscriptions.plans import status
from tailrace.web.accounts.deletion import delete_account, request_deletion
from tests.kit import at_once, wait_until, worker
from tests.protection.hometitle.kit import SCAN, add, alerts, changes, now, request_scan
from tests.servers.soda import LEGALS, SodaServer
from tests.servers.web import ReceivedRequest

pytestmark = pytest.mark.django_db(transaction=True)
Scan = Callable[..., Job]


@pytest.fixture(autouse=True)
def two_lots(soda: SodaServer, ann: User) -> list[WatchedProperty]:
    soda.deed("2020", ["SMITH, JOHN"], ["DOE, JANE"])
    return [add(ann, lot_of(3, block, 20)) for block in (10, 11)]


def meanwhile(soda: SodaServer, work: Callable[[], object]) -> None:
    """Do this during the first request, which is of the first property."""

    def once(request: ReceivedRequest) -> None:
        soda.before = lambda request: None
        try:
            work()
        finally:
            connection.close()

    soda.before = once


def test_a_property_that_is_removed_is_left_out(
    soda: SodaServer, ann: User, scan: Scan, two_lots: list[WatchedProperty]
) -> None:
    meanwhile(soda, lambda: [watch.remove(ann.pk, row.pk) for row in two_lots])
    assert scan(ann).state == "completed"
    assert not PropertySnapshot.objects.exists()
    assert soda.datasets().count(LEGALS) == 1


def test_a_cancelled_subscription_ends_the_scan(soda: SodaServer, ann: User, scan: Scan) -> None:
    row = PlanSubscription.objects.get()
    meanwhile(soda, lambda: status.cancel([row.pk]))
    job = scan(ann)
    assert (job.state, job.error) == ("skipped", f"account {ann.pk} has no active plan")
    assert PropertySnapshot.objects.count() == 1, "what was read is kept"
    assert soda.datasets().count(LEGALS) == 1


def test_a_deleted_account_leaves_nothing(soda: SodaServer, ann: User, scan: Scan) -> None:
    def delete() -> None:
        request_deletion(ann)
        assert delete_account(ann.pk)

    meanwhile(soda, delete)
    scan(ann)
    assert not PropertySnapshot.objects.exists()
    assert not WatchedProperty.objects.exists()
    assert changes() == alerts() == []


def test_a_job_that_an_operator_cancels_stops(soda: SodaServer, ann: User, scan: Scan) -> None:
    meanwhile(soda, lambda: Job.objects.filter(handler=SCAN).update(cancel_requested=True))
    assert scan(ann).state == "cancelled"
    assert soda.datasets().count(LEGALS) == 1


def test_a_reading_that_began_earlier_does_not_undo_a_later_one(
    two_lots: list[WatchedProperty],
) -> None:
    def reading(owner: str) -> Reading:
        return Reading({"1": Document("1", "DEED", grantees=(owner,))})

    [row, _] = two_lots
    slow, first, fast = database_now(), database_now(), database_now()
    save(row, reading("A"), began=first, run=1)
    save(row, reading("B"), began=fast, run=2)
    assert len(changes()) == 1
    save(row, reading("A"), began=slow, run=3)
    save(row, reading("B"), began=database_now(), run=4)
    assert len(changes()) == len(alerts()) == 1


def test_scans_of_one_property_at_once_raise_one_change(two_lots: list[WatchedProperty]) -> None:
    [row, _] = two_lots
    save(row, Reading({"1": Document("1", "DEED", grantees=("A",))}), began=database_now(), run=1)
    changed = Reading({"1": Document("1", "DEED", grantees=("B",))})
    at_once(8, lambda number: save(row, changed, began=database_now(), run=number))
    assert len(changes()) == len(alerts()) == 1


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_worker_that_ends_in_a_scan_hands_it_on_once(
    soda: SodaServer, ann: User, scan: Scan, process_env, tmp_path: Path, number: int
) -> None:
    """The other worker reads only what the first one has not stored."""
    scan(ann)
    soda.rename_parties("2020", 2, "THIEF, TOM")
    soda.requests.clear()
    held, release = threading.Event(), threading.Event()

    def hold_second_property(request: ReceivedRequest) -> None:
        if "block%3D11" in request.path and not release.is_set():
            held.set()
            release.wait(60)

    soda.before = hold_second_property
    env = process_env | {
        "PROTECTION_SODA_URL": soda.url,
        "PROTECTION_SODA_TOKEN": soda.token,
        "SHUTDOWN_TIMEOUT": "1",
    }
    with worker(env, [SCAN], log=tmp_path / "first.log") as first:
        job = request_scan(ann)
        assert held.wait(60)
        first.signal(number)
        first.process.wait(60)
    release.set()
    Job.objects.filter(state="running").update(lease_until=database_now())
    with worker(env, [SCAN], log=tmp_path / "second.log"):
        wait_until(lambda: now(job).state == "completed", what="the scan on the second worker")
    assert changes() == [("ownership_transfer", "critical", "2020")]
    assert alerts() == [("ownership_transfer", "critical")]
    assert sum("block%3D10" in request.path for request in soda.requests) == 1
