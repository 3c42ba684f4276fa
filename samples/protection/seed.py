from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from tailrace.db.query import database_now
from tailrace.domains.protection.services.properties import watch
from tailrace.domains.protection.services.properties.places import lot_of
from tailrace.domains.protection.services.removals import decisions
from tailrace.domains.protection.services.removals.person import Person
from tailrace.domains.protection.services.reports.period import DEFAULT_DAYS
from tailrace.domains.protection.services.watchlist import items
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.operations.schedules import is_known
from tailrace.samples.protection import deeds
from tailrace.samples.protection.leaks import EMAIL, WATCHED
from tailrace.samples.protection.service import LISTED_PERSON
from tailrace.subscriptions.models import Plan, PlanSubscription
from tailrace.subscriptions.plans.enrolment import Enrolment, enrol

PLAN = "premium"
SCAN, SCAN_PROPERTY, REPORT = (
    "protection.darkwatch_scan",
    "protection.hometitle_scan",
    "protection.reports_generate",
)
BROKERS = ("sample-form", "sample-mail", "sample-letter")
SAMPLE_BROKERS = Path(__file__).with_name("brokers.yaml")
HOSTS = ("people.example", "records.example", "lists.example")
"""The sites of these brokers, which do not exist."""


def brokers_file() -> Path:
    return Path(settings.VAR_DIR) / "sample_brokers.yaml"


def write_brokers_file(url: str) -> None:
    """Write the file of the sample brokers, with all sites at this URL."""
    text = SAMPLE_BROKERS.read_text()
    for host in HOSTS:
        text = text.replace(f"https://{host}", url)
    brokers_file().parent.mkdir(parents=True, exist_ok=True)
    brokers_file().write_text(text)


@transaction.atomic
def seed_protection() -> str:
    """Enrol the first admin in the plan premium, watch sample values and a sample property, scan
    them, start removals at the sample brokers, and make a report. Return why something was left
    out, or nothing.

    Only the file of brokers is written if the admin has a plan.
    """
    write_brokers_file(f"http://127.0.0.1:{settings.PROTECTION_SAMPLE_PORT}")
    admin = User.objects.filter(is_superuser=True).order_by("pk").first()
    if admin is None or PlanSubscription.objects.filter(account=admin).exists():
        return ""
    if not Plan.objects.filter(name=PLAN).exists():
        return f"There is no plan {PLAN}: no samples of protection were created."
    enrol(Enrolment(admin.pk, PLAN))
    for kind, value in WATCHED:
        items.add(admin.pk, kind, value)
    watch.add(admin.pk, lot_of(deeds.BOROUGH, deeds.BLOCK, deeds.LOT))
    refusal = _start_removals(admin)
    if is_known(SCAN):
        _enqueue(admin)
    return refusal


def _start_removals(admin: User) -> str:
    person = Person(name=LISTED_PERSON, email=EMAIL, city="New York", region="NY")
    try:
        decisions.start(admin, BROKERS, person)
    except decisions.Refused as error:  # another file of brokers is configured
        return f"No sample removals were started: {error}"
    return ""


def _enqueue(admin: User) -> None:
    """Enqueue the scan of leaks, two scans of the property, and a report of them, one after the
    other.

    The first scan of the property stores its records; the second finds the new ones.
    """
    today = database_now().date()
    first_day = today - timedelta(days=DEFAULT_DAYS - 1)
    days = {"first_day": first_day.isoformat(), "last_day": today.isoformat()}
    steps: tuple[tuple[str, dict[str, str], str], ...] = (
        (SCAN, {}, "leaks"),
        (SCAN_PROPERTY, {}, "first"),
        (SCAN_PROPERTY, {}, "second"),
        (REPORT, days, "report"),
    )
    previous: int | None = None
    for handler, more, name in steps:
        previous = enqueue(
            handler,
            {"account": admin.pk, **more},
            unique_key=f"sample:{admin.pk}:{name}",
            after=previous,
        )
