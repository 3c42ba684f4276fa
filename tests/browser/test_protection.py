"""Protection in a real browser: a value is watched, and an exposure is dealt with."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from domains.protection.models import Exposure
from tests.protection.kit import fill_protection

pytestmark = [pytest.mark.once, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_a_value_is_watched_and_an_exposure_is_resolved(visit: Callable[..., Page]) -> None:
    ann = User.objects.create_user("ann", "ann@example.org", password="a long password")
    page = visit(ann, "/protection/", width=375, scheme="dark")
    page.get_by_role("link", name="Add a value").click()
    page.get_by_label("Value", exact=True).fill("ann@example.org")
    page.get_by_role("button", name="Watch it").click()
    expect(page.locator("#items")).to_contain_text("a•••@example.org")
    fill_protection(ann)
    page.get_by_role("link", name="Exposures", exact=True).click()
    page.get_by_label("Adobe").check()
    page.get_by_role("button", name="Mark as resolved").click()
    expect(page.locator("main")).to_contain_text("1 exposure marked as resolved.")
    expect(page.locator("main")).to_contain_text("None is new.")
    assert Exposure.objects.get().state == "resolved"
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
