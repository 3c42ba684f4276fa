"""An endpoint that keeps failing is left alone by its breaker, and disabled after five days."""

import pytest
from django.db import transaction

from tailrace.jobs.engine.drain import drain
from tailrace.jobs.models import Attempt, Breaker, Job
from tailrace.jobs.runtime.states import State
from tailrace.subscriptions.channels.webhook.operations import endpoints
from tests.kit import at_once
from tests.servers.web import Response, serving
from tests.subscriptions.channels.webhook.kit import (
    BOTH,
    WEBHOOK,
    jobs_of,
    owner,
)
from tests.subscriptions.sample_domain import publish_event

pytestmark = pytest.mark.django_db(transaction=True)


def test_five_days_of_failure_disable_it_and_mail_its_owner(run_jobs, clock, smtp) -> None:
    with serving(lambda request: Response(500)) as server:
        _ann, endpoint, _secret = owner(server.url)
        for hour in range(0, 5 * 24 + 12, 8):
            publish_event()
            run_jobs("subscriptions.notify", WEBHOOK)
            endpoint.refresh_from_db()
            if hour < 5 * 24:
                assert endpoint.state == "enabled", f"after {hour} hours"
            if endpoint.state == "disabled":
                break
            clock.step(8 * 3600)
        run_jobs("subscriptions.endpoint_disabled")
        before = len(server.requests)
        publish_event()
        run_jobs(*BOTH, "subscriptions.endpoint_disabled")
        assert len(server.requests) == before
    assert endpoint.state == "disabled"
    assert endpoint.reason == "it has failed for 5 days"
    assert not [row for row in jobs_of() if row.state == State.PENDING]
    mails = [mail for mail in smtp.received if "was disabled" in mail.message["Subject"]]
    assert len(mails) == 1
    assert Job.objects.filter(handler="subscriptions.endpoint_disabled").count() == 1


def test_one_success_in_five_days_forgets_the_failures(run_jobs, clock) -> None:
    answer = Response(500)
    with serving(lambda request: answer) as server:
        _ann, endpoint, _secret = owner(server.url)
        for day in range(9):
            answer = Response(200 if day == 4 else 500)
            publish_event()
            run_jobs(*BOTH)
            endpoint.refresh_from_db()
            assert (endpoint.failing_since is None) == (day == 4)
            clock.step(86_400)
    assert endpoint.state == "enabled"


def test_two_workers_that_see_it_fail_disable_it_once(run_jobs, clock) -> None:
    _ann, endpoint, _secret = owner("https://example.org/")

    def disable(number: int) -> bool:
        with transaction.atomic():
            return endpoints.disable_failing(endpoint.pk, "it has failed for 5 days")

    assert sorted(at_once(4, disable)) == [False, False, False, True]
    assert Job.objects.filter(handler="subscriptions.endpoint_disabled").count() == 1


def test_an_enabled_endpoint_begins_anew(run_jobs, clock) -> None:
    answer = Response(500)
    with serving(lambda request: answer) as server:
        _ann, endpoint, _secret = owner(server.url)
        for _ in range(6):
            publish_event()
        run_jobs(*BOTH)
        assert Breaker.objects.get().open_until is not None
        endpoints.disable(endpoint)
        answer = Response()
        endpoints.enable(endpoint)
        publish_event()
        run_jobs(*BOTH)
        endpoint.refresh_from_db()
        assert endpoint.failing_since is None
        assert jobs_of()[-1].state == State.COMPLETED


def test_a_half_open_breaker_lets_one_job_through(run_jobs, clock) -> None:
    with serving(lambda request: Response(500)) as server:
        owner(server.url)
        events = [publish_event() for _ in range(60)]
        run_jobs(*BOTH)
        tried = len(server.requests)
        assert tried < 15
        clock.step(10_000)
        at_once(4, lambda number: drain(WEBHOOK))
        assert len(server.requests) == tried + 1
    assert {row.state for row in jobs_of(events)} == {State.PENDING}
    lost = Attempt.objects.filter(outcome="lost")
    assert not lost.exists()
