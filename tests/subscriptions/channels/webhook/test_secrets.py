"""Secrets of endpoints: stored encrypted, shown nowhere, rotated."""

from datetime import timedelta

import pytest
from standardwebhooks import WebhookVerificationError

from tailrace.db import clock as events_clock
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.runtime.states import State
from tailrace.net import encryption, http_client
from tailrace.subscriptions.channels.webhook.operations import endpoints
from tailrace.subscriptions.models import Delivery, Endpoint
from tests.servers.web import ReceivedRequest, Response, Server, serving
from tests.subscriptions.channels.webhook.kit import (
    BOTH,
    WEBHOOK,
    job,
    owner,
    verify,
)
from tests.subscriptions.sample_domain import publish_event

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_secret_is_shown_once_and_encrypted_at_rest() -> None:
    _ann, endpoint, secret = owner("https://example.org/hook")
    endpoint.refresh_from_db()
    assert secret.startswith("whsec_")
    assert secret.removeprefix("whsec_") not in endpoint.secret
    assert encryption.decrypt(endpoint.secret) == secret
    assert encryption.encrypt("x") != encryption.encrypt("x")


def sent(server: Server) -> list[ReceivedRequest]:
    """Return the deliveries, but those of the security log."""
    return [each for each in server.requests if b'"security.' not in each.body]


def test_for_24_hours_after_a_rotation_both_secrets_sign(run_jobs, clock) -> None:
    with serving() as server:
        _ann, endpoint, old = owner(server.url)
        new = endpoints.rotate(endpoint)
        publish_event()
        run_jobs(*BOTH)
        (request,) = sent(server)
        assert len(request.headers["webhook-signature"].split()) == 2
        assert verify(request, old) == verify(request, new)
        newest = endpoints.rotate(endpoint)
        publish_event()
        run_jobs(*BOTH)
        for secret in (newest, new, old):
            assert verify(sent(server)[1], secret)
        # Past the overlap, by the time that the endpoint's row knows.
        Endpoint.objects.update(
            old_secret_until=events_clock.now() - timedelta(seconds=1), older_secrets=[]
        )
        publish_event()
        run_jobs(*BOTH)
        assert len(sent(server)[2].headers["webhook-signature"].split()) == 1
        assert verify(sent(server)[2], newest)
        with pytest.raises(WebhookVerificationError):
            verify(sent(server)[2], new)


def test_the_overlap_lasts_24_hours(clock) -> None:
    _ann, endpoint, _secret = owner("https://example.org/hook")
    endpoints.rotate(endpoint)
    assert endpoint.old_secret_until is not None
    left = endpoint.old_secret_until - events_clock.now()
    assert timedelta(hours=23, minutes=59) < left <= timedelta(hours=24)


def test_no_secret_shows_in_jobs_attempts_logs_or_tracebacks(
    run_jobs, clock, caplog, capfd, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(lambda request: Response(500)) as server:
        _ann, endpoint, secret = owner(f"{server.url}/in?token=t0ken-word")
        fresh = endpoints.rotate(endpoint)
        publish_event()
        run_jobs(*BOTH)
        monkeypatch.setattr(http_client, "_tls", lambda ca_file: 1 / 0)  # a bug of our own
        clock.step(10_000)
        run_jobs(WEBHOOK)
    assert "ZeroDivisionError" in "".join(Attempt.objects.values_list("traceback", flat=True))
    stored_text = "".join(
        str(value)
        for model in (Job, Attempt, Delivery)
        for row in model.objects.values()
        for value in row.values()
    )
    written = capfd.readouterr()
    shown = stored_text + caplog.text + written.out + written.err
    stored = Endpoint.objects.values().get()
    for whsec in (secret, fresh):
        bare = whsec.removeprefix("whsec_")
        assert bare not in shown
        assert bare not in str(stored)
        assert str(stored["secret"]) not in shown
    assert "t0ken-word" not in shown


def test_a_secret_that_cannot_be_read_postpones_the_jobs(run_jobs, settings, clock) -> None:
    with serving() as server:
        _ann, _endpoint, _secret = owner(server.url)
        before, settings.ENCRYPTION_KEYS = settings.ENCRYPTION_KEYS, ["A" * 43]
        publish_event()
        run_jobs(*BOTH)
        assert job().state == State.PENDING
        assert job().attempt == 0
        assert "ENCRYPTION_KEYS" in job().error
        settings.ENCRYPTION_KEYS = before
        clock.step(4000)
        run_jobs(WEBHOOK)
    assert job().state == State.COMPLETED
    assert server.requests
