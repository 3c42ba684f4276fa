"""The search of jobs in a browser: one box, whose text stays in the address."""

from collections import defaultdict
from collections.abc import Callable

import pytest
from django.contrib.admin import site
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tailrace.jobs.engine.failures import fill_in
from tailrace.jobs.platform.admin.lists import pagination
from tailrace.jobs.platform.inspection.search import lists
from tests.browser.screens import SCREENS, Scheme, assert_fits, take_picture
from tests.jobs import operators

pytestmark = [pytest.mark.once, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
JOBS = "/admin/tailrace_jobs/job/"


# How much wider a text is than its box, which would cut it.
TOO_WIDE = """
(box, text) => {
  const style = getComputedStyle(box), pen = document.createElement("canvas").getContext("2d");
  pen.font = style.font;
  const room = box.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  return pen.measureText(text).width - room;
}
"""


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_what_a_search_takes_can_be_read(
    visit: Callable[..., Page], width: int, scheme: Scheme
) -> None:
    operators.register_handlers()
    user = User.objects.create_superuser("chief", password="a long password")
    page = visit(user, JOBS, width, scheme)
    terms = page.locator("#search-terms")
    for term in ("queue:", "since:", "field=value"):
        expect(terms.get_by_text(term, exact=True)).to_be_visible()
    take_picture(page, f"search-terms-{width}-{scheme}")
    assert_fits(page)


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
def test_no_search_box_cuts_its_text(visit: Callable[..., Page], every: bool) -> None:
    """The short form opens one list of each template, and measures the texts of all others in its
    box."""
    page = visit(User.objects.create_superuser("chief", password="a long password"), JOBS, 375)
    alike: defaultdict[object, list[tuple[str, str]]] = defaultdict(list)
    for model, admin in site._registry.items():
        if admin.search_help_text:
            address = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
            alike[address if every else admin.change_list_template].append(
                (address, str(admin.search_help_text))
            )
    for (address, own), *others in alike.values():
        page.goto(address)
        box = page.locator("#changelist-search [name=q]")
        expect(box).to_have_attribute("placeholder", own)
        for text in (own, *(text for _, text in others)):
            assert box.evaluate(TOO_WIDE, text) <= 0, (address, text)


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_a_search_stays_in_the_address(
    staff: Callable[..., User], visit: Callable[..., Page], width: int, scheme: Scheme
) -> None:
    operators.register_handlers()
    job = operators.job(lane="tenant 7")
    operators.job(lane="tenant 8")
    page = visit(staff("keeper", "tailrace_jobs.view_job"), JOBS, width, scheme)
    box = page.locator("#changelist-search [name=q]")
    box.fill('lane:"tenant 7" state:failed')
    box.press("Enter")
    rows = page.locator("#result_list tbody tr")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text(str(job.pk))
    page.reload()
    expect(rows).to_have_count(1)
    expect(box).to_have_value('lane:"tenant 7" state:failed')
    assert_fits(page)
    box.fill("since:soon")
    box.press("Enter")
    expect(page.locator("body")).to_contain_text("takes a time in UTC or a duration before now")
    expect(rows).to_have_count(0)
    assert_fits(page)


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_what_was_not_searched_is_said_with_the_way_to_it(
    staff: Callable[..., User],
    visit: Callable[..., Page],
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    scheme: Scheme,
) -> None:
    monkeypatch.setattr(pagination, "WINDOW", 3)
    monkeypatch.setattr(lists, "GROUPS", 1)
    operators.register_handlers()
    first = operators.job("completed", lane="tenant 7")
    fill_in.group([operators.job(error=f"{word} is broken").pk for word in ("oil", "wick")])
    operators.job("completed", lane="tenant 8")
    page = visit(
        staff("keeper", "tailrace_jobs.view_job", "tailrace_jobs.view_job_payload"),
        JOBS,
        width,
        scheme,
    )
    box, rows = page.locator("#changelist-search [name=q]"), page.locator("#result_list tbody tr")
    body = page.locator("body")
    box.fill('lane:"tenant 7"')
    box.press("Enter")
    expect(body).to_contain_text("Not all rows were searched")
    expect(body).to_contain_text("add since:2h, until:2d or state:failed to the box above")
    expect(rows).to_have_count(0)
    take_picture(page, f"search-cut-{width}-{scheme}")
    assert_fits(page)
    page.get_by_role("link", name="Older").click()
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text(str(first.pk))
    expect(body).not_to_contain_text("Not all rows were searched")
    box.fill("error:broken")
    box.press("Enter")
    expect(body).to_contain_text("Not all errors were compared")
    take_picture(page, f"search-errors-{width}-{scheme}")
    assert_fits(page)
