"""What the tests of watched properties share."""

from django.contrib.auth.models import User
from django.db.models.functions import Now

from tailrace.domains.protection.models import Alert, PropertyChange, WatchedProperty
from tailrace.domains.protection.services.properties import watch
from tailrace.domains.protection.services.properties.places import Place, address_of, lot_of
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job
from tailrace.subscriptions.models import Plan, PlanSubscription
from tests.subscriptions.plans.kit import subscribe

SCAN, MONITOR = "protection.hometitle_scan", "protection.hometitle_monitor"
LOT = lot_of(3, 10, 20)
"""Where SodaServer.deed records documents, if it is not told otherwise."""
ADDRESS = address_of(3, "12", "Main Street")


def premium(user: User) -> PlanSubscription:
    """Subscribe the user to a plan with monitoring."""
    Plan.objects.get_or_create(name="premium", defaults={"monitoring": True})
    return subscribe("premium", user)


def add(user: User, place: Place = LOT) -> WatchedProperty:
    return watch.add(user.pk, place)


def request_scan(user: User, **payload: object) -> Job:
    """Enqueue a scan of the account; return its job."""
    id = enqueue(SCAN, {"account": user.pk, **payload})
    return Job.objects.get(pk=id)


def now(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)


def changes() -> list[tuple[str, str, str]]:
    """Return kind, severity and document of all changes."""
    rows = PropertyChange.objects.order_by("pk")
    return [(row.kind, row.get_severity_display(), row.document_id) for row in rows]


def alerts() -> list[tuple[str, str]]:
    """Return kind and severity of all alerts."""
    return [(row.kind, row.get_severity_display()) for row in Alert.objects.order_by("pk")]


def due_now() -> None:
    """Let jobs that wait for their next attempt be due."""
    Job.objects.filter(handler__in=[SCAN, MONITOR], state="pending").update(due_at=Now())
