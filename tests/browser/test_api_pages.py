"""The pages of the API's documentation in a real browser: they fit, and can be read and hit."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tests.browser.screens import SCREENS, Scheme, look_at

pytestmark = [pytest.mark.once, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_the_documentation_can_be_read(
    staff: Callable[..., User], visit: Callable[..., Page], width: int, scheme: Scheme
) -> None:
    page = visit(staff("ann"), "/api/docs", width=width, scheme=scheme)
    look_at(page, "api", whole=False)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 23, 27)"
    assert dark == (scheme == "dark")
    low = """() => [...document.querySelectorAll("main a, main summary")]
        .filter((one) => !one.closest("p") && one.checkVisibility())
        .map((one) => one.getBoundingClientRect().height).filter((height) => height < 24)"""
    assert page.evaluate(low) == []
    page.get_by_role("link", name="POST /api/jobs", exact=True).click()
    expect(page.get_by_role("heading", name="Request a job")).to_be_in_viewport()
    for detail in page.locator("details").all()[:3]:
        detail.locator("summary").click()
    look_at(page, "api-jobs")
    assert page.evaluate(low) == []
    page.goto("/api/docs/webhooks")
    look_at(page, "api-webhooks")
    page.get_by_role("link", name="All operations").click()
    expect(page.get_by_role("heading", name="API", exact=True)).to_be_visible()
    page.get_by_role("link", name="Tailrace", exact=True).click()
    page.wait_for_url("**/me/**")
