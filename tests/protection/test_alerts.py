"""One alert per user, kind and source within a pause, unless a finding is worse."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User
from django.db import connection

from tailrace.domains.protection.alerts.raising import NOTIFICATIONS, Finding, raise_alerts
from tailrace.domains.protection.models import Alert, Severity
from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tests.web.jobs.requesting import operator

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def user() -> User:
    return User.objects.create_user("ann", "ann@example.test")


def find(user: User, severity: Severity = Severity.WARNING, source: str = "hibp") -> int:
    """Raise an alert on a finding of this severity; return how many were raised."""
    return len(raise_alerts([Finding(user.pk, "exposure", source, severity)]))


def test_a_second_alert_waits_for_the_end_of_the_pause(user, clock) -> None:
    assert find(user) == 1
    assert find(user) == 0
    assert find(user, source="other") == 1
    clock.step(86_340)
    assert find(user) == 0
    clock.step(120)
    assert find(user) == 1


def test_a_rise_in_severity_passes(user) -> None:
    counts = [find(user, each) for each in (Severity.INFO, Severity.CRITICAL, Severity.WARNING)]
    assert counts == [1, 1, 0]


def test_of_findings_at_once_the_worst_counts(user) -> None:
    severities = (Severity.INFO, Severity.CRITICAL, Severity.WARNING)
    raise_alerts([Finding(user.pk, "exposure", "hibp", each) for each in severities])
    assert [alert.severity for alert in Alert.objects.all()] == [Severity.CRITICAL]


def test_workers_at_once_raise_one(user) -> None:
    def work(_number: int) -> int:
        try:
            return find(user)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(16))) == 1


def test_alerts_are_handed_on_once(user, run_jobs) -> None:
    for source in ("one", "two"):
        find(user, source=source)
    assert Job.objects.filter(handler=NOTIFICATIONS).count() == 1
    run_jobs(NOTIFICATIONS)
    events = Event.objects.filter(type="protection.alert_raised").order_by("id")
    assert [event.payload["alert"] for event in events] == list(
        Alert.objects.order_by("id").values_list("pk", flat=True)
    )
    assert not Alert.objects.filter(announced_at__isnull=True).exists()


def test_an_operator_has_alerts_handed_on_that_were_not(user, run_jobs) -> None:
    """Any number of times: each is announced once."""
    olga = operator("olga")
    find(user)
    Job.objects.all().delete()
    for new_events in (1, 0):
        answer = olga.post("/jobs", {"handler": NOTIFICATIONS, "payload": {"account": user.pk}})
        assert answer.status_code == 201
        run_jobs(NOTIFICATIONS)
        job = Job.objects.get(pk=answer.json()["id"])
        assert (job.state, job.lane) == ("completed", str(user.pk))
        assert job.result == {"alerts": new_events}
    assert Event.objects.filter(type="protection.alert_raised").count() == 1
