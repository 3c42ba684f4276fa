"""GET /healthz: for machines, without login and secrets, and never slow."""

import json
import os
import socket
import time
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from tailrace.config.monitoring import health
from tailrace.jobs.models import Job, Pulse
from tailrace.jobs.platform.inspection import broker, verdict
from tests import forks
from tests.kit import PATIENCE, wait_until
from tests.servers.relay import relay

ROOT = Path(__file__).parents[2]
KEYS = {
    "status", "database", "broker", "causes", "events", "jobs", "workers", "tick_age_s",
    "ticked_by", "unserved", "connections",
}  # fmt: skip
TOKEN = "a-token-of-monitoring"

# Requests /healthz as the web server does, in a process with other engines.
ASK = """
import json, sys, time
import django
from django.test import Client
django.setup()
client = Client()
start = time.monotonic()
answer = client.get(
    "/healthz", SERVER_NAME="127.0.0.1", headers={"Authorization": "Bearer a-token-of-monitoring"}
)
print(json.dumps([answer.status_code, time.monotonic() - start, answer.json()]))
"""


def ask(**variables: str) -> tuple[int, float, dict]:
    """Status, seconds and body of /healthz with these engines."""
    done = forks.run(
        ["-c", ASK],
        cwd=ROOT,
        env={**os.environ, "HEALTH_TOKEN": TOKEN, **variables},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    status, seconds, body = json.loads(done.stdout)
    return status, seconds, body


@pytest.fixture(autouse=True)
def _reset_broker() -> None:
    broker.recent.forget()
    verdict.forget()


@pytest.fixture
def monitoring(settings) -> Client:
    """Monitoring, which may see everything."""
    settings.HEALTH_TOKEN = TOKEN
    return Client(headers={"Authorization": f"Bearer {TOKEN}"})


@pytest.mark.django_db
def test_the_answer_has_the_documented_shape(monkeypatch, monitoring: Client) -> None:
    # The broker has two seconds to answer, which are few on a crowded machine.
    monkeypatch.setattr(broker, "BROKER_CACHE_SECONDS", 0)
    wait_until(lambda: broker.broker() == "ok")
    monkeypatch.setattr(broker, "BROKER_CACHE_SECONDS", 600)
    answer = monitoring.get("/healthz")
    body = answer.json()
    assert answer.status_code == 200
    assert set(body) == KEYS
    assert (body["database"], body["broker"]) == ("ok", "ok")
    assert set(body["jobs"]) == {"pending", "running", "completed", "failed"}
    assert (body["events"], body["workers"], body["unserved"]) == (0, 0, [])


@pytest.mark.django_db
def test_a_stranger_sees_no_counts_and_no_names_of_queues(settings) -> None:
    settings.HEALTH_TOKEN = TOKEN
    user = User.objects.create_user("ann")
    ann, staff = Client(), Client()
    ann.force_login(user)
    for client in (Client(), ann, Client(headers={"Authorization": "Bearer other"})):
        assert set(client.get("/healthz").json()) == {"status", "database", "broker"}
    User.objects.filter(pk=user.pk).update(is_staff=True)
    staff.force_login(user)
    assert set(staff.get("/healthz").json()) == KEYS
    settings.HEALTH_TOKEN = ""
    for sent in ("Bearer ", "Bearer", ""):
        answer = Client(headers={"Authorization": sent}).get("/healthz")
        assert set(answer.json()) == {"status", "database", "broker"}


def test_liveness_needs_no_database_and_no_host_header() -> None:
    answer = Client().get("/healthz/live", SERVER_NAME="unknown.example.org")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.django_db
def test_it_needs_no_login_and_is_not_cached() -> None:
    answer = Client().get("/healthz")
    assert answer.status_code == 200
    assert "no-store" in answer.headers["Cache-Control"]
    assert Client().post("/healthz").status_code == 405


@pytest.mark.django_db
def test_it_says_who_ticks(monitoring: Client) -> None:
    assert monitoring.get("/healthz").json()["ticked_by"] is None
    Pulse.objects.create(name="tick", by="celery@one (host:12)")
    body = monitoring.get("/healthz").json()
    assert body["ticked_by"] == "celery@one (host:12)"
    assert body["tick_age_s"] < 60


@pytest.mark.django_db
def test_a_queue_that_is_due_and_not_served_is_named(monitoring: Client) -> None:
    from tailrace.jobs.engine import registry
    from tailrace.jobs.engine.maintenance.sync_declared import sync

    sync()
    name = next(iter(registry.all_handlers()))
    long_ago = timezone.now() - timezone.timedelta(minutes=5)
    Job.objects.create(handler=name, state="pending", due_at=long_ago)
    body = monitoring.get("/healthz").json()
    assert body["unserved"] == [name]
    assert body["jobs"]["pending"] == 1


def test_without_database_the_answer_is_503_with_the_broker() -> None:
    status, seconds, body = ask(DATABASE_URL="postgres://nobody:secret-word@127.0.0.1:1/none")
    assert status == 503
    assert seconds < 60
    assert set(body) == KEYS
    assert (body["database"], body["broker"], body["jobs"]) == ("away", "ok", None)
    assert "secret-word" not in json.dumps(body)


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_a_broker_that_is_down_is_reported_at_once(scheme: str) -> None:
    status, seconds, body = ask(
        DATABASE_URL="postgres://nobody@127.0.0.1:1/none", BROKER_URL=f"{scheme}://127.0.0.1:1//"
    )
    assert status == 503
    assert body["broker"] == "away"
    assert seconds < 60


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_an_unresponsive_broker_does_not_delay_the_answer(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        started = time.monotonic()
        assert broker.broker_answers(f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/") is False
        assert time.monotonic() - started < 60


def test_a_silent_database_does_not_delay_the_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        status, seconds, _ = ask(DATABASE_URL=f"postgres://nobody@127.0.0.1:{port}/none")
    assert status == 503
    assert seconds < 150


@pytest.mark.django_db
def test_the_broker_is_not_checked_for_each_request(monkeypatch) -> None:
    monkeypatch.setattr(broker, "BROKER_CACHE_SECONDS", 600)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(PATIENCE)
        settings.BROKER_URL, kept = (
            f"redis://127.0.0.1:{silent.getsockname()[1]}/0",
            (settings.BROKER_URL),
        )
        try:
            answers = [Client().get("/healthz").json()["broker"] for _ in range(5)]
        finally:
            settings.BROKER_URL = kept
        silent.accept()
        silent.setblocking(False)
        with pytest.raises(BlockingIOError):
            silent.accept()
    assert answers == ["away"] * 5


@pytest.mark.django_db
def test_a_stranger_costs_one_statement(django_assert_num_queries) -> None:
    Client().get("/healthz")  # the verdict is worked out every few seconds
    with django_assert_num_queries(1):
        assert Client().get("/healthz").json()["database"] == "ok"


def test_a_broker_that_was_started_again_is_not_called_away() -> None:
    if not settings.BROKER_URL.startswith("redis"):
        pytest.skip("the connection to this broker is not kept")
    with relay(settings.BROKER_URL) as link:
        assert broker.broker_answers(link.url)
        kept = len(link.sockets)
        assert broker.broker_answers(link.url)
        assert len(link.sockets) == kept, "the connection is used again"
        link.go_away()
        link.come_back()
        assert broker.broker_answers(link.url)
        link.go_away()
        assert not broker.broker_answers(link.url)


@pytest.mark.django_db
def test_it_reads_no_big_table_to_count_it(django_assert_max_num_queries) -> None:
    with django_assert_max_num_queries(16):
        health.details()
