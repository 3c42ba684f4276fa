"""Protection in a real browser: a value is watched, an exposure is dealt with, a list renews."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect
from pytest_django.fixtures import Settings

from tailrace.domains.protection.models import Exposure, Recording
from tests.browser.screens import SCREENS, Scheme, assert_fits, look_at, take_picture
from tests.protection.kit import customer, fill_protection
from tests.servers.hibp import hibp_service

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
    expect(page.locator("main")).to_contain_text("No exposure is new.")
    assert Exposure.objects.get().state == "resolved"
    page.get_by_role("link", name="Voices", exact=True).click()
    expect(page.locator("#recordings")).to_contain_text("pending")
    Recording.objects.update(state=Recording.State.MATCHED)
    expect(page.locator("#recordings")).to_contain_text("matched")  # the list renews itself
    expect(page.locator("[hx-get*='protection']")).to_have_count(0)
    assert_fits(page)


def test_a_password_is_looked_up_and_a_recording_is_downloaded(
    visit: Callable[..., Page], settings: Settings, protection_folder: Path
) -> None:
    ann = User.objects.create_user("ann", "ann@example.org", password="a long password")
    fill_protection(ann)
    with hibp_service() as service:
        settings.PROTECTION_PASSWORDS_URL = service.url
        service.passwords = {"hunter2": 1_234}
        page = visit(ann, "/protection/passwords", width=375, scheme="dark")
        for password, result in (("hunter2", "in leaks 1,234 times"), ("tr0ub4dor", "in none")):
            page.get_by_label("Password", exact=True).fill(password)
            page.get_by_role("button", name="Check the password").click()
            expect(page.locator("#result")).to_contain_text(result)
            expect(page.get_by_label("Password", exact=True)).to_have_value("")
            take_picture(page, f"password-{password}")
            assert_fits(page)
    page.get_by_role("link", name="Voices", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("link", name="a.wav", exact=True).click()
    assert download.value.suggested_filename == "a.wav"
    assert download.value.path().read_bytes() == b"RIFF"


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_the_card_names_the_setting_that_lacks(
    staff: Callable[..., User],
    visit: Callable[..., Page],
    settings: Settings,
    width: int,
    scheme: Scheme,
) -> None:
    settings.PROTECTION_HIBP_KEY = ""
    customer("ann", "gold")
    page = visit(staff("operator", "tailrace_protection.view_alert"), "/", width, scheme)
    card = page.locator("section", has=page.locator("#title-protection"))
    expect(card).to_contain_text("PROTECTION_HIBP_KEY is not set")
    expect(card).to_contain_text("haveibeenpwned.com/API/Key")
    look_at(page, "protection-unset")
