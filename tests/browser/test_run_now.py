"""Run now in a browser: errors stand at the fields, what was entered stays, and a job is made."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tailrace.jobs.models import Job
from tests.browser.screens import SCREENS, Scheme, assert_fits
from tests.sandbox.handlers import Requested

pytestmark = [pytest.mark.once, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
RUN = f"/admin/tailrace_jobs/queue/{Requested.name}/run/"


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_a_form_makes_a_job(
    staff: Callable[..., User], visit: Callable[..., Page], width: int, scheme: Scheme
) -> None:
    keeper = staff(
        "keeper", "tailrace_jobs.add_job", "tailrace_jobs.view_job", "tailrace_jobs.view_queue"
    )
    page = visit(keeper, RUN, width, scheme)
    page.fill("[name=payload-title]", "M")
    page.fill("[name=payload-month]", "2026-03-01")
    page.click("button:has-text('Run now')")
    expect(page.locator(".errors")).to_have_count(1)
    expect(page.locator(".errors")).to_contain_text("at least 2 characters")
    expect(page.locator("[name=payload-month]")).to_have_value("2026-03-01")
    assert_fits(page)
    page.fill("[name=payload-title]", "March")
    page.click("button:has-text('Run now')")
    page.wait_for_url("**/admin/tailrace_jobs/job/*/change/")
    expect(page.locator("body")).to_contain_text("of test.requested was created")
    assert Job.objects.get(handler=Requested.name).payload["month"] == "2026-03-01"
