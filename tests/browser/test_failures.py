"""Failures in a browser: the list, a group, a replay with its preview, and its undo."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tailrace.jobs.engine.failures.fingerprint import fingerprint
from tailrace.jobs.engine.failures.record import count
from tailrace.jobs.models import Job
from tests.browser.screens import SCREENS, Scheme, assert_fits
from tests.jobs import operators

pytestmark = [pytest.mark.once, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
ERROR = "the mail server refused order 4711 of 'anna': try again"


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_a_group_is_replayed_and_put_back(
    staff: Callable[..., User], visit: Callable[..., Page], width: int, scheme: Scheme
) -> None:
    operators.register_handlers()
    group = fingerprint(operators.Trim.name, "smtplib.SMTPDataError", ERROR, "a.py in handle")
    count({group: 9})
    for _ in range(9):
        operators.job(error=ERROR, failure_group_id=group.id)
    keeper = staff(
        "keeper", "tailrace_jobs.view_job", "tailrace_jobs.view_job_payload",
        "tailrace_jobs.replay_job", "tailrace_jobs.view_failuregroup",
        "tailrace_jobs.change_failuregroup", "tailrace_events.view_hidden",
    )  # fmt: skip
    page = visit(keeper, "/admin/tailrace_jobs/failuregroup/", width, scheme)
    expect(page.locator("#result_list")).to_contain_text("the mail server refused order")
    trend = page.locator("#result_list svg")
    expect(trend).to_have_accessible_name("9 in 24 hours, at most 9 in an hour")
    assert_fits(page)
    page.click("#result_list a:has-text('SMTPDataError')")
    expect(page.locator("body")).to_contain_text("a.py in handle")
    latest = page.locator("[role=region][aria-label='Latest failed jobs']")
    assert latest.evaluate("(it) => it.scrollWidth - it.clientWidth") <= 0
    assert_fits(page)
    page.click("a:has-text('Replay these 9')")
    expect(page.locator("#content-main")).to_contain_text("Replay: 9 jobs")
    assert_fits(page)
    assert Job.objects.failed().count() == 9
    page.click("button:has-text('Replay 9 jobs')")
    expect(page.locator("body")).to_contain_text("9 jobs replayed.")
    assert Job.objects.pending().count() == 9
    assert_fits(page)
    page.click("button:has-text('Undo 9 jobs')")
    expect(page.locator("body")).to_contain_text(
        "9 jobs were restored to their state before the replay."
    )
    assert Job.objects.failed().count() == 9
