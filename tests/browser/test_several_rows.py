"""An action on several rows of a list in a browser: what was ticked is named, then it is done."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tailrace.jobs.models import Queue
from tailrace.jobs.platform.admin.lists import several
from tests.browser.screens import SCREENS, Scheme, assert_fits, take_picture
from tests.jobs import operators
from tests.sandbox.handlers import Requested

pytestmark = [pytest.mark.once, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
QUEUES = "/admin/tailrace_jobs/queue/"


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_two_queues_that_were_ticked_are_named_and_then_paused(
    staff: Callable[..., User], visit: Callable[..., Page], width: int, scheme: Scheme
) -> None:
    operators.register_handlers()
    chosen = [operators.Trim.name, Requested.name]
    page = visit(
        staff("keeper", "tailrace_jobs.view_queue", "tailrace_jobs.pause_queue"),
        QUEUES,
        width,
        scheme,
    )
    for name in chosen:
        page.locator(f"input.action-select[value='{name}']").check()
    page.get_by_label("Select action to run").select_option("Pause")
    assert_fits(page)
    page.get_by_role("button", name="Run").click()
    content = page.locator("#content-main")
    expect(content.get_by_role("heading", name="Pause: 2 queues")).to_be_visible()
    assert content.get_by_role("listitem").all_inner_texts() == chosen
    take_picture(page, f"several-{width}-{scheme}")
    assert_fits(page)
    assert not Queue.objects.exclude(paused_at=None).exists()
    content.get_by_role("button", name="Pause: 2 queues").click()
    page.wait_for_url(f"**{QUEUES}")
    for place, name in enumerate(chosen):  # the list begins with those that are paused
        row = page.locator("#result_list tbody tr").nth(place)
        expect(row).to_contain_text(name)
        expect(row.locator("td[data-label=state]")).to_contain_text("paused")
    assert set(Queue.objects.exclude(paused_at=None).values_list("name", flat=True)) == set(chosen)
    assert_fits(page)


def test_more_than_the_most_are_refused_with_a_reason(
    staff: Callable[..., User], visit: Callable[..., Page], monkeypatch: pytest.MonkeyPatch
) -> None:
    operators.register_handlers()
    monkeypatch.setattr(several, "MOST", 1)
    page = visit(
        staff("keeper", "tailrace_jobs.view_queue", "tailrace_jobs.pause_queue"),
        QUEUES,
        375,
        "dark",
    )
    for name in (operators.Trim.name, Requested.name):
        page.locator(f"input.action-select[value='{name}']").check()
    page.get_by_label("Select action to run").select_option("Pause")
    page.get_by_role("button", name="Run").click()
    expect(
        page.get_by_text("more than 1 queues are selected; filter the list first")
    ).to_be_visible()
    take_picture(page, "several-refused-375-dark")
    assert_fits(page)
    assert not Queue.objects.exclude(paused_at=None).exists()
