"""Objects of a user in this app, for tests that request every address."""

from typing import Any

from django.contrib.auth.models import User

from tailrace.subscriptions.models import Plan, PlanJob, PlanSubscription
from tests.subscriptions.plans.kit import SCAN, subscribe


def owned_objects(owner: User) -> dict[str, Any]:
    plan = Plan.objects.create(name="basic")
    PlanJob.objects.create(plan=plan, handler=SCAN, frequency="monthly", installed=True)
    row = PlanSubscription.objects.filter(account=owner).first() or subscribe("basic", owner)
    return {"plan": plan.pk, "plansubscription": row.pk, "plan-subscriptions": row.pk}
