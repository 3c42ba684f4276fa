"""Requests for /metrics, however many: strangers cost nothing, and readers cost one reading."""

import re
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tailrace.db.query import query
from tailrace.jobs.models import Breaker, Job
from tailrace.jobs.platform.inspection.metrics import page
from tests.kit import at_once

TOKEN = "a-token-of-monitoring"
SECRET = "s3cret"


@pytest.fixture(autouse=True)
def _token(settings) -> Iterator[None]:
    settings.HEALTH_TOKEN = TOKEN
    page.forget()
    yield
    page.forget()


@pytest.mark.django_db
@pytest.mark.parametrize(
    "sent", ["", "Bearer", "Bearer ", "Bearer \xff", f"Basic {TOKEN}", f"bearer {TOKEN}", TOKEN]
)
def test_a_stranger_gets_nothing_and_costs_no_statement(sent: str) -> None:
    with CaptureQueriesContext(connection) as queries:
        answer = Client(headers={"Authorization": sent}).get("/metrics")
    assert (answer.status_code, answer.content, len(queries)) == (401, b"", 0)


@pytest.mark.django_db
def test_staff_without_the_permission_to_see_queues_get_nothing() -> None:
    """Also with all other permissions: the names of queues and event types are theirs to see who
    may see queues."""
    others = Permission.objects.exclude(codename="view_queue")
    for name, permissions in {"nobody": [], "nearly": others}.items():
        staff = User.objects.create_user(name, is_staff=True)
        staff.user_permissions.set(permissions)
        client = Client()
        client.force_login(staff)
        answer = client.get("/metrics")
        assert (answer.status_code, answer.content) == (401, b"")
        User.objects.filter(pk=staff.pk).update(is_superuser=True, is_active=False)
        assert client.get("/metrics").status_code == 401


@pytest.mark.django_db(transaction=True)
def test_many_readers_at_once_cost_one_reading() -> None:
    client = {"Authorization": f"Bearer {TOKEN}"}
    answers = at_once(8, lambda _: Client(headers=client).get("/metrics"))
    assert [answer.status_code for answer in answers] == [200] * 8
    times = {re.search(r"^tailrace_read_seconds (.+)$", answer.text, re.M)[1] for answer in answers}
    assert len(times) == 1, "each reading took another time"


@pytest.mark.django_db
def test_nothing_of_users_destinations_or_payloads_is_in_it() -> None:
    Breaker.objects.create(
        name=f"subscriptions.webhook:https://{SECRET}.example.org", failures=9, last_error=SECRET
    )
    for state in ("pending", "failed", "running"):
        Job.objects.create(
            handler="subscriptions.webhook", state=state, routing_key=SECRET, lane=SECRET,
            payload={"token": SECRET}, error=SECRET, worker=SECRET, progress_note=SECRET,
        )  # fmt: skip
    query(
        "INSERT INTO tailrace_jobs_sweeprun (invariant, outcome, error, found, repaired,"
        " duration_ms) VALUES ('jobs.lost', 'error', %(text)s, 0, 0, 0) RETURNING 1",
        text=SECRET,
    )
    text = Client(headers={"Authorization": f"Bearer {TOKEN}"}).get("/metrics").text
    assert 'tailrace_breakers{group="subscriptions.webhook"' in text
    assert SECRET not in text
