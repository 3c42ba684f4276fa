"""What an endpoint has missed is sent: what failed again, what is missing for the first time."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry

from tailrace.db.query import database_now
from tailrace.events.readers import Readers
from tailrace.jobs.models import Job
from tailrace.subscriptions.channels.webhook.history import messages, recovery
from tailrace.subscriptions.channels.webhook.operations import endpoints
from tailrace.subscriptions.channels.webhook.operations.errors import EndpointError
from tailrace.subscriptions.models import Endpoint
from tests.servers.web import Response, serving
from tests.subscriptions.channels.webhook.kit import BOTH, WEBHOOK, owner
from tests.subscriptions.sample_domain import Rehearsal, publish_event, readers

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def _clear() -> object:
    yield
    readers.clear()


def _recover(run_jobs, endpoint: Endpoint, what: recovery.What) -> dict[str, object]:
    id = recovery.start(endpoint, what, database_now() - HOUR, endpoint.user)
    run_jobs(recovery.Recover.name)
    job = Job.objects.get(pk=id)
    assert job.state == "completed", job.error
    return job.result


def test_all_that_failed_is_sent_again_once(run_jobs) -> None:
    with serving(lambda request: Response(301)) as server:
        ann, endpoint, _ = owner(server.url)
        for title in ("Faust", "Hamlet", "Macbeth"):
            publish_event(payload={"title": title})
        run_jobs(*BOTH)
        assert len(server.requests) == 3
        server.respond = lambda request: Response()
        assert _recover(run_jobs, endpoint, "failed") == {"sent": 3, "examined": 3, "whole": True}
        run_jobs(WEBHOOK)
        assert len(server.requests) == 6
        assert _recover(run_jobs, endpoint, "failed")["sent"] == 0
    ids = [request.headers["webhook-id"] for request in server.requests]
    assert sorted(ids[:3]) == sorted(ids[3:])
    entry = LogEntry.objects.filter(user=ann).earliest("pk")
    assert "started a recovery: failed since" in entry.change_message


def test_what_a_new_endpoint_has_no_message_of_is_sent_in_order(run_jobs) -> None:
    with serving() as server:
        ann, first, _ = owner(f"{server.url}/first")
        for title in ("devel:faust", "hamlet", "devel:macbeth", "devel:secret"):
            publish_event(payload={"title": title})
        publish_event(Rehearsal, payload={"title": "devel:no webhook"})
        readers["devel:secret"] = Readers.of(["somebody else"])
        run_jobs(*BOTH)
        assert len(server.requests) == 3
        second, _ = endpoints.create(ann, f"{server.url}/second", subject_pattern="devel:*")
        assert _recover(run_jobs, second, "missing")["sent"] == 2
        assert _recover(run_jobs, second, "missing")["sent"] == 0
        assert _recover(run_jobs, first, "missing")["sent"] == 0
        run_jobs(WEBHOOK)
    sent = [request for request in server.requests if request.path == "/second"]
    assert len(sent) == 2
    assert not [request for request in server.requests if b"secret" in request.body]


def test_a_recovery_looks_at_a_bounded_number(run_jobs, monkeypatch) -> None:
    monkeypatch.setattr(recovery, "PAGE", 2)
    monkeypatch.setattr(recovery, "MAX_EXAMINED", 4)
    ann, endpoint, _ = owner("https://example.org/")
    for number in range(6):
        publish_event(payload={"title": str(number)})
    run_jobs("subscriptions.notify")
    endpoints.disable(endpoint)
    endpoints.enable(endpoint)
    assert _recover(run_jobs, endpoint, "failed") == {"sent": 4, "examined": 4, "whole": False}
    other, _ = endpoints.create(ann, "https://example.org/", event_types=["stage.premiere"])
    assert _recover(run_jobs, other, "missing") == {"sent": 4, "examined": 4, "whole": False}


def test_a_recovery_has_limits() -> None:
    ann, endpoint, _ = owner("https://example.org/")
    now = database_now()
    for since in (now - timedelta(days=31), now + HOUR):
        with pytest.raises(EndpointError, match="within the last 30 days"):
            recovery.start(endpoint, "failed", since, ann)
    recovery.start(endpoint, "failed", now - HOUR, ann)
    with pytest.raises(EndpointError, match="another recovery"):
        recovery.start(endpoint, "missing", now - HOUR, ann)
    endpoints.disable(endpoint)
    with pytest.raises(EndpointError, match="is disabled"):
        recovery.start(endpoint, "failed", now - HOUR, ann)


def test_a_message_is_sent_again_whatever_became_of_it(run_jobs, clock, monkeypatch) -> None:
    monkeypatch.setattr(messages, "MAX_AGAIN", 2)
    with serving(lambda request: Response(500)) as server:
        ann, endpoint, _ = owner(server.url)
        publish_event(payload={"title": "Faust"})
        run_jobs(*BOTH)

        def message() -> messages.Message:
            return messages.describe(endpoint, list(messages.of_endpoint(endpoint)))[0]

        assert (message().state, len(message().tries)) == ("waiting", 1)
        assert message().next_try is not None
        server.respond = lambda request: Response()
        messages.resend(endpoint, message(), ann)
        run_jobs(WEBHOOK)
        assert message().state == "delivered"
        for _ in range(2):
            messages.resend(endpoint, message(), ann)
            run_jobs(WEBHOOK)
        with pytest.raises(EndpointError, match="was already sent 3 times"):
            messages.resend(endpoint, message(), ann)
    assert len(message().tries) == 4
    assert len({request.headers["webhook-id"] for request in server.requests}) == 1
    assert len(list(messages.of_endpoint(endpoint))) == 1
    assert LogEntry.objects.filter(user=ann, change_message__startswith="sent msg_").count() == 3
