"""What the messages and the recoveries of an endpoint cost follows what is asked for: a page, or a
time, however many messages it and others have."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection

from tailrace.events.models import Event
from tailrace.events.types import all_types
from tailrace.subscriptions.channels.webhook.history import message_list, messages, recovery
from tailrace.subscriptions.channels.webhook.operations import endpoints
from tailrace.subscriptions.models import Endpoint
from tailrace.subscriptions.notifications.audience.history import newest_ids
from tests.jobs.engine.plans.pages_read import frugal
from tests.subscriptions.channels.webhook.kit import FIRST, WEBHOOK, assign_role, owner
from tests.web.program import Program

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
EVENTS, OTHERS = 60_000, 20
BIG = {
    "tailrace_jobs_job",
    "tailrace_events_event",
    "tailrace_subscriptions_delivery",
    "tailrace_subscriptions_notification",
}

# Every second an event, with a message to the endpoint, of which one of fifty failed, and one to
# one of the others; and as many events that no webhook sends.
FILL = """
INSERT INTO tailrace_events_event (source, source_id, type, schema_version, subject, payload, actor,
                          trace_parent, problem, occurred_at, recorded_at)
SELECT 's', g::text, CASE WHEN g %% 2 = 0 THEN 'stage.premiere' ELSE 'test.happened' END, 1,
       'play' || g %% 1000, '{"title": "x"}', '', '', '', at, at
FROM generate_series(1, 2 * %(events)s) g,
  LATERAL (SELECT now() - (2 * %(events)s - g) * interval '0.5 seconds' AS at) t;

INSERT INTO tailrace_jobs_job (handler, event_id, routing_key, state, priority, lane, due_at,
                      attempt, claim_no, worker, isolate, progress_note, error, created_at,
                      started_at, finished_at, cancel_requested)
SELECT %(queue)s, e.id, 'user:' || %(user)s || ':endpoint:' || place.endpoint,
       CASE WHEN place.mine AND e.id %% 50 = 0 THEN 'failed' ELSE 'completed' END, 1,
       'endpoint:' || place.endpoint, e.recorded_at, 1, 1, 'w', false, '', '', e.recorded_at,
       e.recorded_at, e.recorded_at, false
FROM tailrace_events_event e, LATERAL (VALUES (%(endpoint)s, true),
  (%(endpoint)s + 1000 + e.id %% %(others)s, false)) place (endpoint, mine)
WHERE e.type = 'stage.premiere' ORDER BY e.id;

INSERT INTO tailrace_subscriptions_delivery (endpoint_id, event_id, job_id, message_id, attempt, at,
                                    milliseconds, status, outcome, error, answer)
SELECT %(endpoint)s, event_id, id, 'm', 1, created_at, 1, 200, 'ok', '', '' FROM tailrace_jobs_job
WHERE lane = 'endpoint:' || %(endpoint)s;

ANALYZE tailrace_jobs_job, tailrace_events_event, tailrace_subscriptions_delivery;
"""


@pytest.fixture(scope="module")
def filled(rows_of_module: None) -> Endpoint:
    """An endpoint with 60,000 messages beside as many of others."""
    ann, endpoint, _secret = owner("https://example.org/")
    values = {"queue": WEBHOOK, "user": ann.pk, "endpoint": endpoint.pk}
    with connection.cursor() as cursor:
        cursor.execute(FILL, {**values, "events": EVENTS, "others": OTHERS})
    return endpoint


@pytest.fixture
def endpoint(filled: Endpoint) -> Endpoint:
    """The same as this test reads it: what another changed is rolled back."""
    assign_role(FIRST, filled.user)  # roles of the sandbox end with each test
    return Endpoint.objects.get(pk=filled.pk)


def reads(work: Any, pages: int) -> None:
    """Assert that no statement reads a big table from end to end, or more pages than this."""
    frugal(work, pages=pages, big=BIG)


def test_a_page_of_the_messages(endpoint: Endpoint) -> None:
    ann = Program(endpoint.user)
    path = f"/endpoints/{endpoint.pk}/messages"
    first = ann.get(path)
    assert len(first.json()["items"]) == 50
    reads(partial(ann.get, path), 500)
    reads(partial(ann.get, path, cursor=first.json()["next"]), 500)
    middle = list(messages.of_endpoint(endpoint).values_list("pk", flat=True))[EVENTS // 2]
    older = messages.of_endpoint(endpoint).filter(pk__lt=middle)
    reads(lambda: messages.describe(endpoint, list(older[:50])), 500)
    reads(partial(ann.get, f"{path}/{middle}"), 100)


def test_a_list_that_has_few_of_the_messages(endpoint: Endpoint) -> None:
    """As many are looked at as one page may cost, and the next page goes on from there."""
    found, older = message_list.page_of(endpoint, 30, name="waiting")
    assert found == []
    assert older is not None
    newest = messages.of_endpoint(endpoint)[message_list.MAX_EXAMINED - 1]
    assert older == newest.pk
    reads(lambda: message_list.page_of(endpoint, 30, name="waiting"), 20_000)
    reads(lambda: message_list.last_tries(endpoint), 50)


def test_an_endpoint_with_few_messages_among_many(endpoint: Endpoint) -> None:
    new, _secret = endpoints.create(endpoint.user, "https://example.org/new")
    ann = Program(endpoint.user)
    reads(partial(ann.get, f"/endpoints/{new.pk}/messages"), 100)
    reads(lambda: list(recovery.latest(new)), 20)


def test_the_newest_events_of_all_types(endpoint: Endpoint) -> None:
    """As the preview of a subscription reads them; most types have none."""
    types = [cls.name for cls in all_types()]
    assert len(newest_ids(types, 500)) == 500
    reads(partial(newest_ids, types, 500), 1000)


@pytest.mark.parametrize("what", ["failed", "missing"])
def test_a_recovery_reads_what_is_since_its_time(
    endpoint: Endpoint, what: recovery.What, run_jobs: Any
) -> None:
    """In pages of 500 along an index; who hears of one event costs about 30 pages of memory."""
    since = Event.objects.latest("id").recorded_at - timedelta(minutes=20)
    new, _secret = endpoints.create(endpoint.user, "https://example.org/new")
    target = endpoint if what == "failed" else new
    results = []

    def recover() -> None:
        id = recovery.start(target, what, since, target.user)
        run_jobs(recovery.Recover.name)
        results.append(recovery.jobs_of(target).get(pk=id).result)

    reads(recover, 20_000)
    (result,) = results
    assert result["whole"]
    assert 1200 <= result["examined"] <= 2000
    assert result["sent"] == pytest.approx(24 if what == "failed" else 1200, abs=30)
