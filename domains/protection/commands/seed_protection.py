"""`tailrace seed_protection`: a plan, a watchlist, a property and removals for the admin."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand
from django.db import transaction

from tailrace.db.query import database_now
from tailrace.domains.protection.processes import sample_brokers, sample_url
from tailrace.domains.protection.properties import watch
from tailrace.domains.protection.properties.places import lot_of
from tailrace.domains.protection.removals import decisions
from tailrace.domains.protection.removals.person import Person
from tailrace.domains.protection.reports.period import DEFAULT_DAYS
from tailrace.domains.protection.sample_sources import brokers, deeds
from tailrace.domains.protection.sample_sources.leaks import EMAIL, WATCHED
from tailrace.domains.protection.watchlist import items
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.schedules import is_known
from tailrace.subscriptions.models import Plan, PlanSubscription
from tailrace.subscriptions.plans.enrolment import Enrolment, enrol

PLAN = "premium"
SCAN, SCAN_PROPERTY, REPORT = (
    "protection.darkwatch_scan",
    "protection.hometitle_scan",
    "protection.reports_generate",
)


class Command(BaseCommand):
    """Does nothing if the admin has a plan already, so it can be repeated."""

    help = (
        "Enrol the first admin in the plan premium, watch sample values and a sample property, scan"
        " them, start removals at the sample brokers, and make a report."
    )

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        brokers.write_file(sample_brokers(), sample_url())
        admin = User.objects.filter(is_superuser=True).order_by("pk").first()
        if admin is None or PlanSubscription.objects.filter(account=admin).exists():
            return
        if not Plan.objects.filter(name=PLAN).exists():
            self.stderr.write(f"There is no plan {PLAN}: no samples of protection were created.")
            return
        enrol(Enrolment(admin.pk, PLAN))
        for kind, value in WATCHED:
            items.add(admin.pk, kind, value)
        watch.add(admin.pk, lot_of(deeds.BOROUGH, deeds.BLOCK, deeds.LOT))
        self._start_removals(admin)
        if is_known(SCAN):
            _enqueue(admin)

    def _start_removals(self, admin: User) -> None:
        person = Person(name=brokers.NAME, email=EMAIL, city="New York", region="NY")
        try:
            decisions.start(admin, brokers.KEYS, person)
        except decisions.Refused as error:  # another file of brokers is configured
            self.stderr.write(f"No sample removals were started: {error}")


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
