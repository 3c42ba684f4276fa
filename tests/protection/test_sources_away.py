"""Scans whose sources are away, refuse, or limit how often they are asked."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from tailrace.domains.protection.models import ItemScan
from tailrace.domains.protection.services.scanning import scan as scanning
from tailrace.domains.protection.services.scanning.payload import SCAN
from tailrace.domains.protection.services.watchlist import items
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Attempt, Job
from tests.kit import wait_until
from tests.protection.kit import customer, customer_who_watches_all, scan
from tests.servers.hibp import HibpService, make_breach
from tests.servers.web import Response

pytestmark = pytest.mark.django_db(transaction=True)
EMAIL = "ann@example.org"


@pytest.fixture
def ann(hibp: HibpService) -> User:
    """A customer who watches a value of each kind."""
    return customer_who_watches_all("ann")


def test_one_source_down_leaves_the_others_results(ann, hibp, run_jobs, clock) -> None:
    clock.stop()
    hibp.add(make_breach("Adobe"), EMAIL)
    hibp.faults["/pasteaccount"] = Response(500)
    job = scan(ann, run_jobs)
    assert job.result["outcome"] == "partial"
    assert job.result["missing"] == {"hibp_pastes": "answered 500"}
    assert job.result["new_exposures"] == 1
    [follow_up] = Job.objects.filter(handler=SCAN, state="pending")
    assert 47 <= (follow_up.due_at - clock.now()).total_seconds() <= 73
    assert follow_up.lane == str(ann.pk)

    hibp.requests.clear()
    hibp.faults.clear()
    hibp.pastes[EMAIL] = [{"Source": "Pastebin", "Id": "x"}]
    clock.step(73)
    run_jobs(SCAN)
    follow_up.refresh_from_db()
    assert follow_up.result["outcome"] == "complete"
    assert follow_up.result["new_exposures"] == 1
    assert [request.path for request in hibp.requests] == ["/pasteaccount/ann%40example.org"]


def test_a_source_that_stays_down_is_tried_four_times(ann, hibp, run_jobs, clock) -> None:
    clock.stop()
    hibp.faults["/pasteaccount"] = Response(500)
    scan(ann, run_jobs)
    for times, wait in enumerate((60, 300, 900), start=1):
        assert len(hibp.asked("pasteaccount")) == times
        clock.step(0.79 * wait)
        run_jobs(SCAN)
        assert len(hibp.asked("pasteaccount")) == times, f"not before {wait} s less a fifth"
        clock.step(0.42 * wait)
        run_jobs(SCAN)
    assert len(hibp.asked("pasteaccount")) == 4
    clock.step(86_400)
    run_jobs(SCAN)
    assert len(hibp.asked("pasteaccount")) == 4, "no fifth run"
    [failed] = Job.objects.filter(handler=SCAN, state="failed")
    assert "hibp: answered 500; tried 4 times" in failed.error


def test_when_all_sources_are_down_the_job_is_tried_four_times(ann, hibp, run_jobs, clock) -> None:
    clock.stop()
    hibp.faults["/"] = Response(500)
    job = scan(ann, run_jobs)
    assert job.state == "pending"
    for wait in (60, 300, 900):
        clock.step(1.21 * wait)
        run_jobs(SCAN)
    job.refresh_from_db()
    assert (job.state, job.attempt) == ("failed", 4)
    clock.step(86_400)
    run_jobs(SCAN)
    assert len(hibp.asked("breachedaccount")) == 4
    assert len(hibp.asked("pasteaccount")) == 2, "then the breaker of both was open"
    assert Attempt.objects.filter(job=job).count() == 4


def test_a_job_that_only_waits_for_a_breaker_is_charged_nothing(ann, hibp, run_jobs, clock) -> None:
    clock.stop()
    hibp.faults["/"] = Response(500)
    jobs = [scan(customer_with_email(name), run_jobs) for name in ("a", "b", "c", "d", "e")]
    job = jobs[-1]
    assert (job.state, job.attempt) == ("pending", 0)
    assert "breaker" in job.error
    hibp.faults.clear()
    for _ in jobs:  # each of the others may be let through before it
        clock.step(20)
        run_jobs(SCAN)
    job.refresh_from_db()
    assert job.state == "completed"


def customer_with_email(name: str) -> User:
    user = customer(name)
    items.add(user.pk, "email", f"{name}@example.org")
    return user


def test_a_refused_key_is_not_tried_again(ann, hibp, run_jobs) -> None:
    hibp.key = "0" * 32
    job = scan(ann, run_jobs)
    assert job.state == "failed"
    assert "hibp: answered 401: check PROTECTION_HIBP_KEY" in job.error
    assert len(hibp.requests) == 2


def test_without_a_key_nothing_is_asked(ann, hibp, run_jobs, settings) -> None:
    settings.PROTECTION_HIBP_KEY = ""
    job = scan(ann, run_jobs)
    assert job.state == "skipped"
    assert job.error == "no source is configured: PROTECTION_HIBP_KEY is not set"
    assert hibp.requests == []


def test_a_used_up_rate_limit_puts_the_job_off(ann, hibp, run_jobs, clock) -> None:
    clock.stop()
    hibp.limit, hibp.window, hibp.retry_after = 2, 3600, 600
    job = scan(ann, run_jobs)
    assert (job.state, job.attempt) == ("pending", 0)
    assert ItemScan.objects.count() == 2, "what was answered is kept"
    asked = list(hibp.requests)
    hibp.limit = None
    clock.step(615)
    run_jobs(SCAN)
    job.refresh_from_db()
    assert job.result["outcome"] == "complete"
    assert len(hibp.requests) == len(asked) + 2, "the refused one, and what was left"


def test_a_long_scan_lets_others_run_and_goes_on(ann, hibp, run_jobs, monkeypatch) -> None:
    monkeypatch.setattr(scanning, "SLICE_SECONDS", 0.03)
    hibp.delay = 0.02
    hibp.add(make_breach("Adobe"), "*")
    job = scan(ann, run_jobs)
    wait_until(lambda: run_jobs(SCAN) == 0 and not Job.objects.pending().filter(pk=job.pk))
    job.refresh_from_db()
    assert (job.state, job.attempt) == ("completed", 1)
    assert job.claim_no > 1
    assert len(hibp.requests) == 4, "nothing is looked up twice"


def run_slices(run_jobs: Any, clock: Any) -> None:
    """Run the scans that are due, and what they leave for a second later, within 20 seconds."""
    for _ in range(20):
        run_jobs(SCAN)
        clock.step(1)
        if not Job.objects.pending().filter(due_at__lt=clock.now() + timedelta(seconds=5)).exists():
            return


def test_a_long_scan_asks_a_source_that_is_down_once_per_run(
    ann, hibp, run_jobs, clock, monkeypatch
) -> None:
    monkeypatch.setattr(scanning, "SLICE_SECONDS", 0.02)
    hibp.delay = 0.03
    clock.stop()
    items.add(ann.pk, "email", "ann@example.com")
    hibp.add(make_breach("Adobe"), "*")
    hibp.faults["/pasteaccount"] = Response(500)
    job = Job.objects.get(pk=enqueue(SCAN, {"account": ann.pk}))
    run_slices(run_jobs, clock)
    job.refresh_from_db()
    assert len(hibp.asked("pasteaccount")) == 1, "one look-up per slice, and that was one of them"
    assert len(hibp.asked("breachedaccount")) == 4, "the other source was asked for everything"
    assert job.result["outcome"] == "partial"
    assert job.result["missing"] == {"hibp_pastes": "answered 500"}
    assert job.result["goes_on"] == {
        "sources": ["hibp_breaches"],
        "reason": "continues after other jobs",
    }
    rest = Job.objects.get(handler=SCAN, payload__sources=["hibp_breaches"])
    assert (rest.state, rest.result["outcome"], rest.lane) == ("completed", "complete", job.lane)
    for times, wait in enumerate((60, 300, 900), start=2):
        clock.step(1.21 * wait)
        run_slices(run_jobs, clock)
        assert len(hibp.asked("pasteaccount")) == times
    clock.step(86_400)
    run_slices(run_jobs, clock)
    assert len(hibp.asked("pasteaccount")) == 4, "no fifth run"
    assert len(hibp.asked("breachedaccount")) == 4
    [failed] = Job.objects.filter(handler=SCAN, state="failed")
    assert "tried 4 times" in failed.error


def test_while_a_limit_is_used_up_a_source_that_is_down_has_no_fifth_run(
    ann, hibp, run_jobs, clock
) -> None:
    clock.stop()
    hibp.limit, hibp.window, hibp.retry_after = 1, 3600, 600
    hibp.faults["/pasteaccount"] = Response(500)
    job = scan(ann, run_jobs)
    for _ in range(30):  # now and then the limit's pause is what both wait for
        clock.step(1100)
        run_jobs(SCAN)
    assert len(hibp.asked("pasteaccount")) == 4
    assert job.result["goes_on"] == {
        "sources": ["hibp_breaches"],
        "reason": "the rate limit of hibp_breaches is used up",
    }
    [waiting] = Job.objects.pending().filter(handler=SCAN)
    assert waiting.payload["sources"] == ["hibp_breaches"]
    assert waiting.attempt == 0, "to wait is charged nothing"
    hibp.limit = None
    clock.step(1100)
    run_jobs(SCAN)
    waiting.refresh_from_db()
    assert (waiting.state, waiting.result["outcome"]) == ("completed", "complete")
    assert ItemScan.objects.filter(source="hibp_breaches").count() == 3


def test_a_scan_that_goes_on_counts_the_runs_that_were_before(
    ann, hibp, run_jobs, clock, monkeypatch
) -> None:
    clock.stop()
    hibp.faults["/"] = Response(500)
    scan(ann, run_jobs)
    assert (len(hibp.asked("breachedaccount")), len(hibp.asked("pasteaccount"))) == (1, 1)
    monkeypatch.setattr(scanning, "SLICE_SECONDS", 0.02)
    hibp.delay = 0.03
    hibp.faults = {"/pasteaccount": Response(500)}
    clock.step(73)
    run_slices(run_jobs, clock)
    assert len(hibp.asked("pasteaccount")) == 2
    hibp.faults = {"/": Response(500)}
    for wait in (300, 900, 86_400):
        clock.step(1.21 * wait)
        run_slices(run_jobs, clock)
    assert len(hibp.asked("pasteaccount")) == 4
