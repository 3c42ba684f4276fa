"""What `make run` shows a newcomer: a plan, watched values, and leaks that a scan finds."""

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from domains.protection.models import Alert, Exposure, Severity, WatchlistItem
from domains.protection.processes import sample_variables
from domains.protection.sample_sources.hibp import KEY
from domains.protection.sample_sources.leaks import WATCHED, sample_service
from jobs.models import Job
from subscriptions.models import PlanSubscription
from tests.servers.web import serving
from tests.subscriptions.plans.kit import make_plans
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db(transaction=True)
SCAN = "protection.darkwatch_scan"


def test_the_admin_gets_a_plan_once_and_the_scan_finds_the_leaks(run_jobs, settings) -> None:
    call_command("seed_protection")
    make_plans()
    call_command("seed_protection")
    assert not WatchlistItem.objects.exists(), "there is no admin"
    admin = User.objects.create_superuser("admin")
    call_command("seed_protection")
    call_command("seed_protection")
    assert PlanSubscription.objects.get().account == admin
    assert WatchlistItem.objects.count() == len(WATCHED)
    assert Job.objects.filter(handler=SCAN).count() == 1
    with serving(sample_service().respond) as server:
        settings.PROTECTION_HIBP_URL, settings.PROTECTION_HIBP_KEY = server.url, KEY
        settings.PROTECTION_HIBP_PER_MINUTE = 600
        run_jobs(SCAN)
    titles = set(Exposure.objects.values_list("breach__title", flat=True))
    assert {"Sample Shop", "Sample Airline", "Sample Forum", "Sample Messenger"} <= titles
    assert {alert.severity for alert in Alert.objects.all()} == {
        Severity.CRITICAL, Severity.WARNING,
    }  # fmt: skip
    text = Visitor(admin).text("/protection/exposures")
    assert "Have the bank replace the card" in text
    assert "Sample Shop" in Visitor(admin).text("/protection/")


def test_scans_of_make_run_ask_this_machine_alone() -> None:
    addresses = {value for name, value in sample_variables().items() if name.endswith("_URL")}
    assert all(address.startswith("http://127.0.0.1:") for address in addresses)
