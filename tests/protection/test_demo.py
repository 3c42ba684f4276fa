"""What `make run` shows a newcomer: a plan, watched values, and leaks that a scan finds."""

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from domains.protection.models import WatchlistItem
from domains.protection.processes import sample_variables
from domains.protection.sample_sources.leaks import WATCHED
from jobs.models import Job
from subscriptions.models import PlanSubscription

pytestmark = pytest.mark.django_db


def test_the_admin_gets_a_plan_and_watched_values_once() -> None:
    call_command("seed_protection")
    assert not WatchlistItem.objects.exists(), "there is no admin"
    admin = User.objects.create_superuser("admin")
    call_command("seed_protection")
    call_command("seed_protection")
    assert PlanSubscription.objects.get().account == admin
    assert WatchlistItem.objects.count() == len(WATCHED)
    assert Job.objects.filter(handler="protection.darkwatch_scan").count() <= 1


def test_scans_of_make_run_ask_this_machine_alone() -> None:
    addresses = {value for name, value in sample_variables().items() if name.endswith("_URL")}
    assert all(address.startswith("http://127.0.0.1:") for address in addresses)
