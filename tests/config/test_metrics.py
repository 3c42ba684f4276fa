"""GET /metrics: the figures of the whole system for Prometheus, cheap and for monitoring alone."""

import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext
from prometheus_client.parser import text_string_to_metric_families

from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.counters import totals
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.engine.maintenance import sync_declared
from tailrace.jobs.engine.maintenance.pruning import history
from tailrace.jobs.engine.maintenance.sweeping.sweep import sweep
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Breaker, Job, Pulse, Queue, Total
from tailrace.jobs.platform.inspection import verdict
from tailrace.jobs.platform.inspection.metrics import page
from tailrace.jobs.runtime.invariant import all_invariants
from tests.kit import held
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Working

TOKEN = "a-token-of-monitoring"

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture(autouse=True)
def _nothing_known() -> Iterator[None]:
    totals._pending.take()
    page.forget()
    yield
    page.forget()


@pytest.fixture
def monitoring(settings) -> Client:
    settings.HEALTH_TOKEN = TOKEN
    return Client(headers={"Authorization": f"Bearer {TOKEN}"})


def scrape(client: Client) -> Samples:
    """Request the figures anew; return each sample by its name and labels."""
    page.forget()
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def of(samples: Samples, name: str, **labels: str) -> float | None:
    return samples.get((f"tailrace_{name}", tuple(sorted(labels.items()))))


@pytest.mark.django_db
def test_only_monitoring_and_staff_who_see_queues_may_read_it(settings, monitoring: Client) -> None:
    user = User.objects.create_user("ann")
    ann = Client()
    ann.force_login(user)
    strangers = [Client(headers={"Authorization": sent}) for sent in ("Bearer ", "Bearer x", "")]
    for client in (Client(), ann, *strangers):
        answer = client.get("/metrics")
        assert (answer.status_code, answer.content) == (401, b"")
    assert monitoring.get("/metrics").status_code == 200
    assert "no-store" in monitoring.get("/metrics").headers["Cache-Control"]
    assert monitoring.post("/metrics").status_code == 405
    user.user_permissions.add(Permission.objects.get(codename="view_queue"))
    assert ann.get("/metrics").status_code == 401
    User.objects.filter(pk=user.pk).update(is_staff=True)
    assert ann.get("/metrics").status_code == 200
    settings.HEALTH_TOKEN = ""
    for client in strangers:
        assert client.get("/metrics").status_code == 401


@pytest.mark.django_db
def test_it_costs_one_statement_and_none_for_some_seconds(monitoring: Client) -> None:
    verdict.current()  # has a cache and statements of its own
    with CaptureQueriesContext(connection) as queries:
        for _ in range(3):
            assert monitoring.get("/metrics").status_code == 200
    tables = [query for query in queries if "jobs_" in query["sql"]]
    assert len(tables) == 1
    assert len(queries) <= 4  # its transaction, and the time limits of that


@pytest.mark.django_db
def test_queues_are_described_by_their_jobs(monitoring: Client) -> None:
    sync_declared.sync()
    for do in ("permanent", "nothing"):
        enqueue(Working, {"do": do})
    drain("test.work")
    for _ in range(3):
        enqueue(Working)
    late = Job.objects.filter(state="pending").first()
    Job.objects.filter(pk=late.pk).update(due_at=late.due_at - timedelta(seconds=90))
    Queue.objects.filter(name="test.other").update(paused_at=late.due_at)
    samples = scrape(monitoring)
    figures = {
        name: of(samples, f"queue_{name}", queue="test.work")
        for name in ("pending_jobs", "due_jobs", "running_jobs", "failed_jobs", "paused")
    }
    assert figures == {
        "pending_jobs": 3, "due_jobs": 3, "running_jobs": 0, "failed_jobs": 1, "paused": 0
    }  # fmt: skip
    assert 90 <= of(samples, "queue_oldest_due_seconds", queue="test.work") < 300
    assert of(samples, "queue_paused", queue="test.other") == 1
    assert of(samples, "attempts_total", queue="test.work", outcome="completed") == 1
    assert of(samples, "attempts_total", queue="test.work", outcome="failed") == 1
    assert of(samples, "run_seconds_count", queue="test.work") == 2
    assert of(samples, "wait_seconds_bucket", queue="test.work", le="+Inf") == 2
    assert of(samples, "database_up") == 1


@pytest.mark.django_db
def test_counters_only_grow(monitoring: Client, django_capture_on_commit_callbacks) -> None:
    seen: list[float] = []
    for _ in range(3):
        with django_capture_on_commit_callbacks(execute=True):
            publish(NewEvent(Happened, {"who": "a"}))
        totals.write()
        seen.append(of(scrape(monitoring), "events_total", type="test.happened"))
        Job.objects.all().delete()  # as pruning does
    assert seen == [1, 2, 3]


@pytest.mark.django_db
def test_upkeep_is_shown(monitoring: Client, clock) -> None:
    Pulse.objects.create(name="tick")
    Pulse.objects.create(name="worker:a@b")
    rule = next(rule.name for rule in all_invariants() if rule.every is not None)
    sweep([rule])
    clock.step(20)
    samples = scrape(monitoring)
    assert 20 <= of(samples, "upkeep_age_seconds", turn="tick") < 200
    assert of(samples, "workers") == 1
    assert of(samples, "sweep_unrepaired", invariant=rule) == 0
    assert 20 <= of(samples, "sweep_age_seconds", invariant=rule) < 200
    assert of(samples, "past_retention_seconds") == 0
    old = Job.objects.create(handler="test.work", state="completed", finished_at=clock.now())
    clock.step(31 * 86_400)
    history.drop_past(30, time.monotonic() + 60)
    assert of(scrape(monitoring), "past_retention_seconds") == pytest.approx(86_400, abs=60)
    Job.objects.filter(pk=old.pk).update(state="failed")
    assert of(scrape(monitoring), "past_retention_seconds") == 0


@pytest.mark.django_db
def test_the_verdict_is_shown_by_kinds_of_causes(monitoring: Client) -> None:
    Pulse.objects.create(name="tick")
    verdict.forget()
    assert of(scrape(monitoring), "causes", code="queue_paused") == 0
    sync_declared.sync()
    Queue.objects.filter(name="test.work").update(paused_at=Now(), paused_by="zacharias")
    enqueue(Working)
    verdict.forget()
    samples = scrape(monitoring)
    assert of(samples, "healthy") == 0
    assert of(samples, "causes", code="queue_paused") == 1
    assert "zacharias" not in str(samples)


@pytest.mark.django_db
def test_names_are_bounded_and_addresses_are_not_shown(monitoring: Client, monkeypatch) -> None:
    private = "hook.example.org"
    for name in ("test.sending:https://hook.example.org/s3cret", "https://hook.example.org/x"):
        Breaker.objects.create(name=name, failures=9)
    for number in range(40):
        Queue.objects.create(name=f"gone.{number}")
        Job.objects.create(handler=f"gone.{number}", state="failed", routing_key=private)
        Total.objects.create(metric=totals.EVENTS, name=f"{private}{number}", numbers=[1])
        Total.objects.create(metric=totals.RUN, name=f"gone.{number}", numbers=[1] * 15)
    samples = scrape(monitoring)
    assert of(samples, "queue_failed_jobs", queue="other") == 40
    assert of(samples, "events_total", type="other") == 40
    assert of(samples, "run_seconds_bucket", queue="other", le="0.01") == 40
    assert of(samples, "breakers", group="test.sending", state="degraded") == 1
    assert of(samples, "breakers", group="other", state="degraded") == 1
    assert not [key for key in samples if "gone." in str(key) or "example" in str(key)]
    monkeypatch.setattr(page, "MAX_NAMES", 1)
    names = {dict(labels).get("queue") for (_name, labels) in scrape(monitoring)}
    assert len(names) <= 3  # one, the others, and samples without a queue


@pytest.mark.django_db(transaction=True)
def test_a_database_that_hangs_is_a_figure_and_delays_nobody_for_long(monitoring: Client) -> None:
    with held("LOCK TABLE tailrace_jobs_queue"):
        began = time.monotonic()
        samples = scrape(monitoring)
        assert time.monotonic() - began < 60
    assert of(samples, "database_up") == 0
    assert of(samples, "workers") is None
