"""Records in a real browser: the search, a deposition with its chain, and sources."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect
from pytest_django.fixtures import Settings

from tailrace.db.query import database_now
from tailrace.domains.records.depositions.receive import receive
from tailrace.domains.records.handlers.indexing import IndexRecord
from tailrace.domains.records.models import Source
from tailrace.domains.records.search.indexing.backends import backends
from tailrace.domains.records.sources.fetch import origin
from tailrace.domains.records.sources.requests import schedule_name, sync_schedules
from tailrace.jobs.models import Job, Schedule
from tests.browser.screens import SCREENS, Scheme, look_at
from tests.kit import at_once
from tests.records.kit import metadata, record, source
from tests.records.sources.test_source_pages import MAY
from tests.servers.json_feed import feed_server

pytestmark = [pytest.mark.once, pytest.mark.slow, pytest.mark.django_db(transaction=True)]
LONG_WORD = "Schneehöhenmessnetzbetreibergesellschaft" * 5
screens = pytest.mark.parametrize(("width", "scheme"), SCREENS)


@pytest.fixture
def ann(staff: Callable[..., User]) -> User:
    return staff("ann")


@pytest.fixture
def _indexed() -> None:
    """Published records in both indexes, one of them with long words."""
    text = "The depth of snow was measured each morning. " * 20
    rows = [record(f"Snow depth, series {n}", description=text) for n in range(25)]
    rows.append(record(LONG_WORD, description=LONG_WORD, creators=[LONG_WORD]))
    rows.append(record("Glacier retreat", description="<b>Ice</b> & its melting in summer"))
    for backend in backends().values():
        backend.index(rows)


@screens
@pytest.mark.usefixtures("_indexed")
def test_records_are_searched_by_words_and_by_meaning(
    ann: User, visit: Callable[..., Page], width: int, scheme: Scheme
) -> None:
    page = visit(ann, "/records/", width=width, scheme=scheme)
    look_at(page, "records")
    search, index = page.get_by_role("searchbox"), page.locator("select[name=index]")
    search.fill("snow depth")
    index.select_option("keyword")
    search.press("Enter")
    hits = page.locator("#hits > li")
    expect(hits).to_have_count(20)
    expect(hits.first.locator("a mark").first).to_have_text("Snow")
    expect(hits.first.locator("div > p mark").first).to_have_text("depth")
    look_at(page, "records-words", whole=False)
    page.get_by_role("link", name="More results").click()
    expect(hits).to_have_count(5)
    page.get_by_role("link", name="Previous results").click()
    expect(hits).to_have_count(20)

    page.goto("/records/")
    search.fill("glaciers retreating")
    index.select_option("vector")
    page.get_by_role("button", name="Search").click()
    expect(hits.first).to_contain_text("Glacier retreat")
    expect(hits.first).to_contain_text("& its melting in summer")
    look_at(page, "records-meaning", whole=False)

    search.fill("quantum")
    search.press("Enter")
    expect(page.get_by_role("main")).to_contain_text("No records match")
    expect(page.get_by_role("main")).to_contain_text("uses the model hashing:256")
    look_at(page, "records-nothing")

    search.fill(LONG_WORD[:30])
    index.select_option("")
    search.press("Enter")
    expect(page.get_by_role("main")).to_contain_text(LONG_WORD)
    look_at(page, "records-long-word", whole=False)

    search.fill("nothing like it" + "x" * 600)
    assert len(search.input_value()) == 500, "a browser takes no more"
    index.select_option("keyword")
    search.press("Enter")
    expect(page.get_by_role("main")).to_contain_text("No records match")
    look_at(page, "records-none")
    page.goto(f"/records/?q={'snow+' * 200}")
    expect(page.get_by_role("alert")).to_contain_text("The search failed")
    look_at(page, "records-too-long")


@screens
@pytest.mark.usefixtures("records_folder")
def test_a_deposition_shows_the_graph_of_its_chain(
    ann: User,
    visit: Callable[..., Page],
    run_jobs: Callable[..., int],
    width: int,
    scheme: Scheme,
) -> None:
    row = receive(ann, metadata(f"Snow depth at Vogel, {LONG_WORD}"), []).deposition
    page = visit(ann, f"/records/depositions/{row.pk}", width=width, scheme=scheme)
    state = page.get_by_label("State of the deposition")
    expect(state).to_contain_text("submitted")
    chain = page.get_by_role("region", name="Events and their jobs")
    expect(chain).to_contain_text("validate_deposition")
    look_at(page, "deposition-begun")
    run_jobs()
    expect(state).to_contain_text("published")
    expect(state.get_by_role("link", name="The record, version 1")).to_be_visible()
    for part in ("auto_approve_curation", "publish_record", "index_record"):
        expect(chain).to_contain_text(part)
    for name in backends():
        expect(chain).to_contain_text(name)
    look_at(page, "deposition-published")


def test_a_broken_index_is_seen_in_the_chain(
    ann: User,
    visit: Callable[..., Page],
    run_jobs: Callable[..., int],
    records_folder: object,
) -> None:
    row = receive(ann, metadata(), []).deposition
    run_jobs()
    jobs = Job.objects.filter(handler=IndexRecord.name, routing_key="vector")
    jobs.update(state="failed", error="no model", done_on=None)
    page = visit(ann, f"/records/depositions/{row.pk}", width=375)
    chain = page.get_by_role("region", name="Events and their jobs")
    expect(chain).to_contain_text("failed")
    invalid = receive(ann, {"title": " "}, []).deposition
    run_jobs()
    page.goto(f"/records/depositions/{invalid.pk}")
    expect(page.get_by_label("State of the deposition")).to_contain_text("title: is missing")
    look_at(page, "deposition-invalid")


@screens
def test_a_curator_tries_makes_pulls_and_pauses_a_source(
    staff: Callable[..., User],
    visit: Callable[..., Page],
    run_jobs: Callable[..., int],
    settings: Settings,
    width: int,
    scheme: Scheme,
) -> None:
    late = source("late-library", last_error=f"answered 500 {LONG_WORD}", errors_in_row=3)
    source("paused-library", is_active=False, url=f"https://example.org/{LONG_WORD}")
    sync_schedules([late])
    due = database_now() - timedelta(hours=7)
    Schedule.objects.filter(name=schedule_name(late.pk)).update(last_run_at=due)
    curator = staff("curator", *MAY)
    with feed_server() as feed:
        settings.RECORDS_LOCAL_SOURCES = [origin(feed.url)]
        settings.RECORDS_REQUESTS_PER_SECOND = 1000.0
        feed.add("1", title=f"Snow depth {LONG_WORD}", creators=["Novak, Ana"], language="en")
        feed.add("2", title="")
        page = visit(curator, "/records/sources", width=width, scheme=scheme)
        expect(page.locator("#sources")).to_contain_text("late by 7 h")
        look_at(page, "sources")
        page.get_by_role("link", name="Add a source").click()
        page.get_by_label("Name", exact=True).fill("library")
        page.get_by_label("Format").select_option("json")
        page.get_by_label("Address").fill("https://10.0.0.1/feed")
        page.get_by_role("button", name="Try it").click()
        expect(page.get_by_role("main")).to_contain_text("10.0.0.1 is not a public address")
        page.get_by_label("Address").fill(feed.url)
        page.get_by_role("button", name="Try it").click()
        expect(page.locator("#trial")).to_contain_text("2 would be deposited")
        look_at(page, "source-tried")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("heading", name="library", exact=True)).to_be_visible()
        assert Source.objects.count() == 3
        page.get_by_role("button", name="Pull now").click()
        expect(page.get_by_label("State of the source")).to_contain_text("The next try is due")
        at_once(1, lambda _: run_jobs("records.pull_from_source"))  # this thread has a loop
        state = page.get_by_label("State of the source")
        expect(state).to_contain_text("2 of 2 records read")
        expect(state).to_contain_text("up to date")
        look_at(page, "source")
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_label("State of the source")).to_contain_text("paused")
        page.goto(f"/records/sources/{late.pk}")
        look_at(page, "source-late")
