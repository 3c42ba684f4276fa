"""Protection in a real browser: a value is watched, an exposure is dealt with, a list renews."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from domains.protection.models import Exposure, Recording
from tests.browser.screens import assert_fits
from tests.protection.kit import fill_protection

pytestmark = [pytest.mark.once, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_a_value_an_exposure_and_a_list_that_renews_itself(
    visit: Callable[..., Page],
) -> None:
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
    page.get_by_role("link", name="Voices", exact=True).click()
    expect(page.locator("#recordings")).to_contain_text("pending")
    Recording.objects.update(state=Recording.State.MATCHED)
    expect(page.locator("#recordings")).to_contain_text("matched")  # the list renews itself
    expect(page.locator("[hx-get*='protection']")).to_have_count(0)
    assert_fits(page)
