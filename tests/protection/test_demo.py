"""What `make run` shows a newcomer: a plan, leaks, a new owner, removals, a report."""

import pytest
from django.contrib.auth.models import User

from tailrace.domains.protection.models import (
    Alert,
    Exposure,
    PropertyChange,
    RemovalRequest,
    Report,
    Severity,
    WatchlistItem,
)
from tailrace.jobs.models import Job
from tailrace.samples.processes import PROCESSES, sources_variables
from tailrace.samples.protection.hibp import KEY
from tailrace.samples.protection.leaks import WATCHED
from tailrace.samples.protection.seed import (
    BROKERS,
    brokers_file,
    seed_protection,
    write_brokers_file,
)
from tailrace.samples.protection.service import SampleSources
from tailrace.subscriptions.models import PlanSubscription
from tests.servers.web import serving
from tests.subscriptions.plans.kit import make_plans
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db(transaction=True)
STEPS = (
    "protection.darkwatch_scan",
    "protection.hometitle_scan",
    "protection.removebrokers_process",
    "protection.reports_generate",
)
DAY = 86_400.0


def test_the_admin_gets_a_plan_once_and_the_samples_fill_each_page(
    run_jobs, settings, tmp_path, clock
) -> None:
    settings.VAR_DIR = tmp_path
    seed_protection()
    make_plans()
    seed_protection()
    assert not WatchlistItem.objects.exists(), "there is no admin"
    admin = User.objects.create_superuser("admin")
    assert seed_protection() == ""
    assert seed_protection() == ""
    assert PlanSubscription.objects.get().account == admin
    assert WatchlistItem.objects.count() == len(WATCHED)
    assert RemovalRequest.objects.count() == len(BROKERS)
    assert Job.objects.filter(handler__in=STEPS).exclude(handler=STEPS[2]).count() == 4
    with serving(SampleSources().respond) as server:
        settings.PROTECTION_HIBP_URL, settings.PROTECTION_HIBP_KEY = server.url, KEY
        settings.PROTECTION_HIBP_PER_MINUTE = 600
        settings.PROTECTION_SODA_URL = server.url
        write_brokers_file(server.url)
        settings.PROTECTION_BROKERS_FILE = str(brokers_file())
        settings.PROTECTION_LOCAL_BROKERS = True
        run_jobs(*STEPS)
        titles = set(Exposure.objects.values_list("breach__title", flat=True))
        assert {"Sample Shop", "Sample Airline", "Sample Forum", "Sample Messenger"} <= titles
        changes = PropertyChange.objects.order_by("pk").values_list("kind", "severity")
        assert list(changes) == [
            ("ownership_transfer", Severity.CRITICAL),
            ("lien_filing", Severity.CRITICAL),
        ]
        report = Report.objects.get(user=admin)
        assert report.totals["exposures"]["exposures"] == Exposure.objects.count()
        assert report.totals["changes"]["changes"] == 2
        clock.step(20)  # the broker takes six requests a minute
        run_jobs(STEPS[2])
        assert _states() == {
            "sample-form": "awaiting_confirmation",
            "sample-mail": "pending",
            "sample-letter": "needs_person",
        }
        assert set(Alert.objects.values_list("kind", flat=True)) == {
            "exposure", "ownership_transfer", "lien_filing", "removal_needs_person",
        }  # fmt: skip
        clock.step(3 * DAY + 60)
        run_jobs(STEPS[2])
        assert _states()["sample-form"] == "removed"
    browser = Visitor(admin)
    assert "Ask the bank to replace the card" in browser.text("/protection/exposures")
    assert "Sample Shop" in browser.text("/protection/")
    assert "Brooklyn, block 12, lot 34" in browser.text("/protection/properties")


def test_make_run_starts_removals_though_only_its_other_processes_have_the_file_of_brokers(
    settings, tmp_path
) -> None:
    settings.VAR_DIR, settings.PROTECTION_BROKERS_FILE = tmp_path, ""
    make_plans()
    User.objects.create_superuser("admin")
    [sources] = [process for process in PROCESSES if process.name == "sources"]
    assert sources.prepare() == ""
    assert RemovalRequest.objects.count() == len(BROKERS)
    assert settings.PROTECTION_BROKERS_FILE == ""


def _states() -> dict[str, str]:
    return dict(RemovalRequest.objects.values_list("broker", "state"))


def test_scans_of_make_run_ask_this_machine_alone(settings) -> None:
    addresses = {value for name, value in sources_variables().items() if name.endswith("_URL")}
    assert len(addresses) == 1
    assert all(address.startswith("http://127.0.0.1:") for address in addresses)


def test_what_is_configured_is_asked_and_not_the_samples(settings) -> None:
    settings.PROTECTION_SODA_URL = "https://data.example.org"
    settings.PROTECTION_BROKERS_FILE = "own.yaml"
    named = sources_variables().keys()
    assert "PROTECTION_SODA_URL" not in named
    assert not {"PROTECTION_BROKERS_FILE", "PROTECTION_LOCAL_BROKERS"} & named
