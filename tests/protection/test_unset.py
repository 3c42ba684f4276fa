"""Settings of providers that lack: what the check and the card say, and when."""

import pytest
from django.contrib.auth.models import User
from django.db import connection

from tailrace.domains.protection.platform.checks import sources_are_configured
from tailrace.subscriptions.models import PlanJob
from tailrace.subscriptions.plans import status
from tests.protection.kit import customer
from tests.web.program import allow
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db
HIBP, SODA = "PROTECTION_HIBP_KEY", "PROTECTION_SODA_URL"


@pytest.fixture(autouse=True)
def _without_keys(settings) -> None:
    settings.PROTECTION_HIBP_KEY = settings.PROTECTION_SODA_URL = ""


@pytest.fixture
def operator() -> User:
    user = User.objects.create_user("operator", is_staff=True)
    allow(user, "tailrace_protection.view_alert")
    return user


def ids() -> list[str]:
    return [str(message.id) for message in sources_are_configured(None)]


def test_who_owes_no_scan_is_informed_and_stopped_by_nothing(operator) -> None:
    key, url = sources_are_configured(None)
    assert (key.msg.split(":")[0], url.msg.split(":")[0]) == (HIBP, SODA)
    assert (key.id, url.id) == ("tailrace_protection.I001", "tailrace_protection.I002")
    assert "is not set" not in Visitor(operator).text("/")


def test_where_a_plan_in_use_owes_the_scan_it_is_a_warning_and_stands_on_the_card(
    operator, settings
) -> None:
    ann = customer("ann", "gold")
    key, url = sources_are_configured(None)
    assert (key.id, url.id) == ("tailrace_protection.W003", "tailrace_protection.I002")
    assert "PROTECTION_HIBP_KEY: is not set" in key.msg
    assert "with subscribers that include protection.darkwatch_scan: gold" in key.msg
    assert "haveibeenpwned.com/API/Key" in str(key.hint)
    text = Visitor(operator).text("/")
    assert f"{HIBP} is not set : scans of watchlists are skipped" in text
    assert "is part of the plan gold, which has subscribers" in text
    assert SODA not in text
    plan = ann.plan_subscription.plan
    PlanJob.objects.create(
        plan=plan, handler="protection.hometitle_scan", frequency="daily", installed=True
    )
    assert ids() == ["tailrace_protection.W003", "tailrace_protection.W004"]
    assert f"{SODA} is not set : scans of properties fail" in Visitor(operator).text("/")
    settings.PROTECTION_HIBP_KEY, settings.PROTECTION_SODA_URL = "0" * 32, "https://soda.example"
    assert ids() == []
    assert "is not set" not in Visitor(operator).text("/")


def test_a_plan_whose_subscriptions_have_ended_owes_nothing(operator) -> None:
    ann = customer("ann", "gold")
    status.cancel([ann.plan_subscription.pk], reason="enough")
    assert ids() == ["tailrace_protection.I001", "tailrace_protection.I002"]
    assert "is not set" not in Visitor(operator).text("/")


def test_the_check_does_without_the_tables() -> None:
    customer("ann", "gold")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tailrace_subscriptions_planjob RENAME TO not_migrated")
        assert ids() == ["tailrace_protection.I001", "tailrace_protection.I002"]
        cursor.execute("ALTER TABLE not_migrated RENAME TO tailrace_subscriptions_planjob")
