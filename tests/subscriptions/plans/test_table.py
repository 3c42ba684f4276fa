"""The plans that migrate creates."""

from importlib import import_module

import pytest
from django.apps import apps

from tailrace.subscriptions.models import Plan, PlanJob

pytestmark = pytest.mark.django_db
DARKWATCH, HOMETITLE = "protection.darkwatch_scan", "protection.hometitle_scan"
REPORTS = "protection.reports_generate"


def test_the_plans_are_those_of_the_table_and_edited_ones_stay() -> None:
    create = import_module("tailrace.subscriptions.migrations.0001_initial").create_plans
    create(apps, None)
    jobs = {
        plan.name: {j.handler: j.frequency for j in plan.jobs.all()} for plan in Plan.objects.all()
    }
    assert jobs == {
        "basic": {DARKWATCH: "monthly", HOMETITLE: "monthly"},
        "plus": {DARKWATCH: "weekly", HOMETITLE: "weekly", REPORTS: "monthly"},
        "premium": {DARKWATCH: "daily", HOMETITLE: "daily", REPORTS: "weekly"},
    }
    assert list(Plan.objects.filter(monitoring=True).values_list("name", flat=True)) == ["premium"]
    PlanJob.objects.filter(plan__name="basic", handler=HOMETITLE).delete()
    create(apps, None)
    assert PlanJob.objects.count() == 7
