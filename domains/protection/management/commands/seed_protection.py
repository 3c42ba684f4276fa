"""`manage.py seed_protection`: a plan, a watchlist and a first scan for the admin."""

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand
from django.db import transaction

from domains.protection.sample_sources.leaks import WATCHED
from domains.protection.watchlist import items
from jobs.enqueue import enqueue
from jobs.schedules import is_known
from subscriptions.models import Plan, PlanSubscription
from subscriptions.plans.enrolment import Enrolment, enrol

PLAN, SCAN = "premium", "protection.darkwatch_scan"


class Command(BaseCommand):
    """Does nothing for an admin who has a plan already. It can be repeated."""

    help = "Enrol the first admin in the plan premium, watch sample values, and scan them."

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        admin = User.objects.filter(is_superuser=True).order_by("pk").first()
        if admin is None or PlanSubscription.objects.filter(account=admin).exists():
            return
        if not Plan.objects.filter(name=PLAN).exists():
            self.stderr.write(f"There is no plan {PLAN}: protection shows no samples.")
            return
        enrol(Enrolment(admin.pk, PLAN))
        for kind, value in WATCHED:
            items.add(admin.pk, kind, value)
        if is_known(SCAN):
            enqueue(SCAN, {"account": admin.pk}, unique_key=f"sample:{admin.pk}")
