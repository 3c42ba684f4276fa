"""The job that scans an account's properties: faults, limits, and what happens meanwhile."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from tailrace.domains.protection.models import PropertySnapshot, WatchedProperty
from tailrace.domains.protection.services.properties import due
from tailrace.domains.protection.services.properties.documents import Reading
from tailrace.domains.protection.services.properties.places import Place, lot_of
from tailrace.domains.protection.services.providers.ask import Provider, ask
from tailrace.domains.protection.services.providers.deeds import DeedSource
from tailrace.jobs.models import Attempt, Breaker, Job
from tests.protection.hometitle.kit import (
    SCAN,
    add,
    changes,
    due_now,
    now,
    request_scan,
)
from tests.servers.soda import LEGALS, MASTER, PARTIES, SodaServer, error
from tests.servers.web import ReceivedRequest, Response, serving

pytestmark = pytest.mark.django_db
Scan = Callable[..., Job]


@pytest.fixture(autouse=True)
def deeds(soda: SodaServer) -> SodaServer:
    soda.deed("2020", ["SMITH, JOHN"], ["DOE, JANE"])
    return soda


def scanned() -> int:
    return PropertySnapshot.objects.count()


def test_retries_after_1_5_and_15_minutes_and_no_fifth_run(
    soda: SodaServer, ann: User, run_jobs, clock
) -> None:
    clock.stop()
    add(ann)
    soda.before = lambda request: error(500, "internal", "Internal error")
    job = request_scan(ann)
    waits = []
    for _attempt in range(4):
        run_jobs(SCAN)
        job = now(job)
        if job.state == "pending":
            waits.append((job.due_at - clock.now()).total_seconds())
            clock.step(waits[-1] + 1)
    assert all(0.79 * s <= wait <= 1.21 * s for s, wait in zip((60, 300, 900), waits, strict=True))
    assert (job.state, job.attempt) == ("failed", 4)
    assert "0 of 1 properties scanned" in job.error
    assert "answered 500" in job.error
    requests = len(soda.requests)
    clock.step(100_000)
    run_jobs(SCAN)
    assert len(soda.requests) == requests


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Response(200, b"<html>Maintenance</html>"), "not JSON"),
        (Response(200, b'[{"document_id": "20'), "not JSON"),
        (Response(200, b""), "not JSON"),
        (Response(200, b'{"error": true, "message": "Try again"}'), "with an error: Try again"),
        (Response(200, b'["a", 1]'), "other than a list of rows"),
        (Response(200, b"[" + b"1," * 2_500_000 + b"1]"), "answered with more than"),
        (Response(200, b"[]", cut=1), "without sending complete"),
        (Response(202, b'{"code": "accepted"}'), "answered 202: the rows are not ready yet"),
    ],
    ids=["html", "cut", "nothing", "error", "no rows", "5 MB", "closed", "202"],
)
def test_answers_that_are_none_are_asked_for_again(
    soda: SodaServer, ann: User, scan: Scan, answer: Response, reason: str
) -> None:
    add(ann)
    soda.before = lambda request: answer
    job = scan(ann)
    assert (job.state, job.attempt) == ("pending", 1)
    assert reason in Attempt.objects.get(job_id=job.pk).message
    assert changes() == []
    assert scanned() == 0


def test_a_429_is_waited_for_and_charges_no_attempt(
    soda: SodaServer, ann: User, scan: Scan, run_jobs, clock
) -> None:
    add(ann)
    soda.before = lambda request: error(429, "throttled", "Slow down", **{"Retry-After": "50"})
    job = scan(ann)
    assert (job.state, job.attempt) == ("pending", 0)
    assert len(soda.requests) == 1
    soda.before = lambda request: None
    clock.step(60)
    run_jobs(SCAN)
    assert now(job).state == "completed"


def test_a_wrong_token_fails_at_once_and_names_the_settings(
    soda: SodaServer, ann: User, scan: Scan, settings
) -> None:
    add(ann)
    settings.PROTECTION_SODA_TOKEN = "wrong"
    job = scan(ann)
    assert (job.state, job.attempt) == ("failed", 1)
    assert "check its settings" in job.error


def test_a_missing_dataset_fails_at_once_and_names_it(ann: User, scan: Scan, monkeypatch) -> None:
    add(ann)
    monkeypatch.setattr("tailrace.domains.protection.services.providers.soda.LEGALS", "aaaa-bbbb")
    job = scan(ann)
    assert job.state == "failed"
    assert "has no dataset aaaa-bbbb: check PROTECTION_SODA_URL" in job.error


def test_without_a_source_the_job_fails_at_once(ann: User, scan: Scan, settings) -> None:
    add(ann)
    settings.PROTECTION_SODA_URL = ""
    job = scan(ann)
    assert job.state == "failed"
    assert "PROTECTION_SODA_URL" in job.error


def test_only_what_is_missing_is_asked_for_again(
    soda: SodaServer, ann: User, scan: Scan, run_jobs
) -> None:
    for block in (10, 11, 12):
        add(ann, lot_of(3, block, 20))
    soda.deed("2021", ["ROE, RICHARD"], block=11)

    def fail_block_11(request: ReceivedRequest) -> Response | None:
        return Response(200, b"<html>") if "block%3D11" in request.path else None

    soda.before = fail_block_11
    job = scan(ann)
    assert job.state == "pending"
    assert "2 of 3 properties scanned" in Attempt.objects.get(job_id=job.pk).message
    assert scanned() == 2
    soda.requests.clear()
    soda.before = lambda request: None
    Breaker.objects.all().delete()
    due_now()
    run_jobs(SCAN)
    assert now(job).result == {"properties": 3, "changes": 0, "alerts": 0}
    assert soda.datasets() == [LEGALS, PARTIES, MASTER]
    assert scanned() == 3


class Pause:
    """A server's limit: it answers `block` with an error, and the next query with 429."""

    def __init__(self, block: int) -> None:
        self.block, self.asked = block, 0

    def __call__(self, request: ReceivedRequest) -> Response | None:
        if f"block%3D{self.block}" not in request.path:
            return error(429, "throttled", "Slow down", **{"Retry-After": "50"})
        self.asked += 1
        return error(500, "internal", "Internal error")


def test_a_source_that_failed_is_charged_though_its_limit_is_used_up(
    soda: SodaServer, ann: User, run_jobs, clock
) -> None:
    clock.stop()
    for block in (10, 11):
        add(ann, lot_of(3, block, 20))
    soda.before = pause = Pause(10)
    job = request_scan(ann)
    for _ in range(10):
        run_jobs(SCAN)
        clock.step(1200)
    assert (now(job).state, now(job).attempt) == ("failed", 4)
    assert pause.asked == 4


class OtherSource(DeedSource):
    """Another source, which has no document."""

    name = "other"
    url = ""

    def is_set(self) -> bool:
        return bool(self.url)

    async def read(self, place: Place, most: int) -> Reading:
        await ask(Provider(self.name, self.url, per_second=1000), "/")
        return Reading({}, True, "")


def test_while_a_source_is_away_the_others_are_read(
    soda: SodaServer, ann: User, run_jobs, clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock.stop()
    rows = [add(ann, lot_of(3, block, 20)) for block in (10, 11, 12, 13, 14, 15)]
    WatchedProperty.objects.filter(pk__in=[row.pk for row in rows[3:]]).update(source="other")
    soda.before = lambda request: error(500, "internal", "Internal error")
    replies = iter([Response(200, b"{}"), error(429, "", "", **{"Retry-After": "50"})])
    asked = []

    def respond(request: ReceivedRequest) -> Response:
        asked.append(request.path)
        return next(replies, Response(200, b"{}"))

    with serving(respond) as server:
        monkeypatch.setattr(OtherSource, "url", server.url)
        job = request_scan(ann)
        run_jobs(SCAN)
        assert (now(job).state, now(job).attempt) == ("pending", 1)
        [rest] = Job.objects.filter(handler=SCAN).exclude(pk=job.pk)
        assert rest.payload["sources"] == ["other"]
        assert (rest.payload["run"], rest.payload["upto"]) == (job.pk, rows[-1].pk)
        requests = len(soda.requests)
        # Its backoff of about a minute must not end with the wait of the other job.
        Job.objects.filter(pk=job.pk).update(due_at=clock.now() + timedelta(hours=1))
        clock.step(59)
        run_jobs(SCAN)
        assert now(rest).result == {"properties": 3, "changes": 0, "alerts": 0}
        assert len(asked) == 4, "one was asked twice"
        assert len(soda.requests) >= requests
    other = WatchedProperty.objects.filter(source="other")
    assert set(other.values_list("scanned_by", flat=True)) == {job.pk}


def test_too_many_properties_for_one_job_are_several_jobs_of_one_lane(
    soda: SodaServer, ann: User, scan: Scan, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert due.MOST_PER_JOB == 100
    monkeypatch.setattr(due, "MOST_PER_JOB", 10)
    for block in range(1, 24):
        add(ann, lot_of(3, block, 20))
    first = scan(ann)
    jobs = Job.objects.filter(handler=SCAN).order_by("pk")
    assert [job.result["properties"] for job in jobs] == [10, 10, 3]
    assert {job.lane for job in jobs} == {str(ann.pk)}
    assert {job.payload["run"] for job in jobs[1:]} == {first.pk}
    assert soda.datasets().count(LEGALS) == 23
    assert WatchedProperty.objects.filter(scanned_by=first.pk).count() == 23


def test_an_open_breaker_charges_no_attempt_and_asks_nothing(
    soda: SodaServer, ann: User, scan: Scan, run_jobs, clock
) -> None:
    add(ann)
    soda.before = lambda request: Response(200, b"<html>")
    for _ in range(5):
        scan(ann)
    requests = len(soda.requests)
    job = scan(ann)
    assert (job.state, job.attempt) == ("pending", 0)
    assert len(soda.requests) == requests
