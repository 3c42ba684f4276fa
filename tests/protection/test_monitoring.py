"""The list of breaches is watched, and monitored accounts are scanned when it grows."""

import pytest

from tailrace.domains.protection.handlers.scans import MonitoringPoll
from tailrace.domains.protection.models import Alert, Breach, Exposure
from tailrace.domains.protection.services.scanning import feed
from tailrace.domains.protection.services.scanning.payload import SCAN
from tailrace.domains.protection.services.watchlist import items
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job
from tailrace.subscriptions.plans import status
from tests.protection.kit import customer
from tests.servers.hibp import make_breach
from tests.servers.web import Response

pytestmark = pytest.mark.django_db(transaction=True)
POLL = MonitoringPoll.name


@pytest.fixture
def poll(hibp, run_jobs):
    """Return `poll()`, which polls once and returns the job; the list has been read before."""

    def poll() -> Job:
        id = enqueue(POLL)
        run_jobs(POLL)
        return Job.objects.get(pk=id)

    hibp.add(make_breach("Old", AddedDate="2024-01-01T00:00:00Z"))
    assert poll().result == {"new": 0}
    return poll


def watch(name: str, plan: str = "premium", kind: str = "email"):
    """Return a customer who watches a value."""
    user = customer(name, plan)
    text = f"{name}@example.org" if kind == "email" else "219-09-9999"
    items.add(user.pk, kind, text)
    return user


def test_a_new_breach_lets_monitored_accounts_be_scanned(hibp, poll, run_jobs) -> None:
    ann = watch("ann")
    watch("basil", plan="basic")
    watch("sue", kind="ssn")
    customer("empty")
    gone = watch("gone")
    status.cancel([gone.plan_subscription.pk])
    hibp.add(make_breach("New", AddedDate="2026-11-01T00:00:00Z"), "ann@example.org")
    assert poll().result == {"new": 1}
    run_jobs(feed.FAN_OUT, SCAN)
    [job] = Job.objects.filter(handler=SCAN)
    assert job.lane == str(ann.pk)
    assert job.priority == 2
    assert job.result["new_exposures"] == 1
    assert hibp.asked("breachedaccount") == ["ann@example.org"]
    assert hibp.asked("pasteaccount") == [], "a breach is no paste"
    assert Alert.objects.get().user == ann


def test_an_unchanged_list_is_not_read_again(hibp, poll, clock) -> None:
    hibp.requests.clear()
    assert poll().result == {"new": 0}
    assert [request.path for request in hibp.requests] == ["/latestbreach"]
    clock.step(86_500)
    poll()
    assert [request.path for request in hibp.requests][1:] == ["/latestbreach", "/breaches"]
    assert not Job.objects.filter(handler=feed.FAN_OUT).exists()


def test_breaches_between_two_polls_are_not_missed(hibp, poll, clock) -> None:
    for number in range(3):
        hibp.add(make_breach(f"New{number}", AddedDate=f"2026-11-0{number + 1}T00:00:00Z"))
    assert poll().result == {"new": 3}
    hibp.add(make_breach("Late", AddedDate="2024-06-01T00:00:00Z"))
    assert poll().result == {"new": 0}, "it is not the latest"
    clock.step(86_500)
    assert poll().result == {"new": 1}, "added out of order"
    assert Breach.objects.filter(listed=True).count() == 5


def test_a_breach_that_a_scan_met_first_is_new_to_the_others(hibp, poll, run_jobs) -> None:
    ann = watch("ann")
    hibp.add(make_breach("New", AddedDate="2026-11-01T00:00:00Z"), "ann@example.org")
    enqueue(SCAN, {"account": ann.pk})
    run_jobs(SCAN)
    assert Exposure.objects.count() == 1
    assert poll().result == {"new": 1}
    run_jobs(POLL, feed.FAN_OUT, SCAN)
    assert Exposure.objects.count() == 1
    assert Alert.objects.count() == 1


def test_a_list_that_cannot_be_read_is_read_later(hibp, poll, run_jobs, clock) -> None:
    watch("ann")
    hibp.add(make_breach("New", AddedDate="2026-11-01T00:00:00Z"), "ann@example.org")
    hibp.faults["/breaches"] = Response(200, b"<html>")
    job = poll()
    assert job.state == "pending"
    hibp.faults.clear()
    clock.step(80)
    run_jobs(POLL, feed.FAN_OUT, SCAN)
    assert Exposure.objects.count() == 1


def test_accounts_are_worked_off_in_pieces(hibp, poll, run_jobs, monkeypatch) -> None:
    monkeypatch.setattr(feed, "PIECE", 2)
    users = [watch(f"user{number}") for number in range(5)]
    hibp.add(make_breach("New", AddedDate="2026-11-01T00:00:00Z"), "*")
    poll()
    run_jobs(feed.FAN_OUT)
    pieces = Job.objects.filter(handler=feed.FAN_OUT).order_by("pk")
    assert [piece.result["scans"] for piece in pieces] == [2, 2, 1, 0]
    pieces.filter(pk=pieces[0].pk).update(state="pending", finished_at=None, done_on=None)
    run_jobs(feed.FAN_OUT)
    assert Job.objects.filter(handler=SCAN).count() == 5, "made again, it doubles none"
    run_jobs(SCAN)
    assert Exposure.objects.count() == len(users)


def test_without_a_key_nobody_polls(hibp, settings) -> None:
    assert list(MonitoringPoll().schedule_keys()) == [""]
    settings.PROTECTION_HIBP_KEY = ""
    assert list(MonitoringPoll().schedule_keys()) == []
