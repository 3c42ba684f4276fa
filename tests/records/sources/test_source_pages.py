"""Curators make, try, change, pause and pull sources on their pages."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User

from tailrace.db.query import database_now
from tailrace.domains.records.models import Deposition, Source
from tailrace.domains.records.sources.requests import PULL, schedule_name, sync_schedules
from tailrace.domains.records.sources.upkeep import trial
from tailrace.events.models import Event
from tailrace.jobs.models import Job, Schedule
from tailrace.net.sample_server import Response
from tests.records.kit import deposit, source
from tests.web.program import allow
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db
SOURCES = "/records/sources"
MAY = (
    "tailrace_records.view_source",
    "tailrace_records.add_source",
    "tailrace_records.change_source",
)


@pytest.fixture
def curator() -> Visitor:
    return visitor("curator", *MAY)


def visitor(name: str, *permissions: str) -> Visitor:
    user = User.objects.create_user(name)
    allow(user, *permissions)
    return Visitor(User.objects.get(pk=user.pk))


def values(url: str, **changed: str) -> dict[str, str]:
    return {"name": "library", "kind": "json", "url": url, "cron": "0 4 * * *"} | changed


def test_a_source_is_tried_made_pulled_and_shown(curator, feed, run_jobs) -> None:
    feed.add("1", title="Snow depth", creators=["Novak, Ana"])
    feed.add("2", title="")
    feed.delete("3")
    data = values(feed.url)
    tried = curator.post(f"{SOURCES}/new", data | {"try": "1"})
    text = words(tried)
    assert tried.status_code == 200
    assert "3 records of 3: 2 would be deposited, 1 unchanged. Nothing has been" in text
    assert "Snow depth 1 new" in text
    assert "creators: is empty" in text
    assert not Source.objects.exists()
    assert not Deposition.objects.exists()
    assert not Event.objects.filter(type__startswith="records.").exists()

    made = curator.post(f"{SOURCES}/new", data)
    row = Source.objects.get()
    assert (made.status_code, made["Location"]) == (302, f"{SOURCES}/{row.pk}")
    assert Schedule.objects.get(name=schedule_name(row.pk)).cron == "0 4 * * *"
    curator.post(f"{SOURCES}/{row.pk}/pull")
    run_jobs(PULL)
    assert Deposition.objects.filter(source=row).count() == 2
    shown = curator.text(f"{SOURCES}/{row.pk}")
    for part in ("library is being read", "up to date", "3 of 3 records read", "2: 2 submitted"):
        assert part in shown
    again = words(curator.post(f"{SOURCES}/{row.pk}/edit", data | {"try": "1"}))
    assert "0 would be deposited, 3 unchanged" in again
    messages = LogEntry.objects.order_by("pk").values_list("change_message", flat=True)
    assert list(messages) == ["made", "pulled"]


def test_the_list_has_each_source_with_how_it_fares(curator) -> None:
    now = database_now()
    late = source("late", last_read_at=now - timedelta(hours=5), records_read=1200)
    broken = source("broken", last_error="answered 500", errors_in_row=2)
    source("off", is_active=False)
    sync_schedules([late, broken])
    due = now - timedelta(hours=2)
    Schedule.objects.filter(name=schedule_name(late.pk)).update(last_run_at=due)
    deposit(source_id=late.pk)
    page = curator.text(SOURCES)
    assert "Last read 5 h ago" in page
    assert "1,200 read in this list · 1 deposition late by 2 h" in page
    assert "The source answered 500" in page
    assert "paused" in page
    assert page.count("late by") == 1
    Source.objects.filter(pk=late.pk).update(last_read_at=now)
    assert "late by" not in curator.text(SOURCES)


def test_a_source_whose_scheduler_stands_still_is_late(curator) -> None:
    row = source("sample", last_read_at=database_now() - timedelta(days=1))
    sync_schedules([row])
    due = database_now() - timedelta(hours=3)
    Schedule.objects.filter(name=schedule_name(row.pk)).update(next_run_at=due)
    assert "late by 3 h" in curator.text(f"{SOURCES}/{row.pk}")


def test_sources_are_listed_page_by_page(curator, monkeypatch) -> None:
    monkeypatch.setattr("tailrace.domains.records.pages.sources.PAGE_SIZE", 2)
    for name in ("c", "a", "b"):
        source(name)
    first = curator.get(SOURCES)
    assert first.content.count(b'<li id="source-') == 2
    after = first.content.decode().split("?after=")[1].split('"')[0]
    second = curator.get(SOURCES, after=after)
    assert b"<strong>c</strong>" in second.content
    assert second.content.count(b'<li id="source-') == 1
    assert curator.get(SOURCES, after="nonsense").status_code == 404


def test_a_paused_source_keeps_its_cursor_and_is_not_read(curator, json_source) -> None:
    row = json_source
    sync_schedules([row])
    Source.objects.update(cursor={"next": "7"})
    page = f"{SOURCES}/{row.pk}"
    curator.post(f"{page}/pause")
    assert not Schedule.objects.filter(name=schedule_name(row.pk)).exists()
    curator.post(f"{page}/pull")
    assert "Failed: feed is paused." in curator.text(page)
    assert not Job.objects.filter(handler=PULL).exists()
    curator.post(f"{page}/resume")
    row.refresh_from_db()
    assert (row.is_active, row.cursor) == (True, {"next": "7"})
    assert Schedule.objects.filter(name=schedule_name(row.pk)).exists()
    curator.post(f"{page}/restart")
    row.refresh_from_db()
    assert row.cursor is None
    assert Job.objects.filter(handler=PULL).count() == 1


def test_only_another_address_or_settings_begin_anew(curator) -> None:
    row = source("sample", kind="json", url="https://example.org/feed", cursor={"next": "7"})
    page = f"{SOURCES}/{row.pk}/edit"
    data = values(row.url, cron="0 5 * * *")
    assert curator.post(page, data).status_code == 302
    row.refresh_from_db()
    assert (row.name, row.cron, row.cursor) == ("sample", "0 5 * * *", {"next": "7"})
    assert curator.post(page, data | {"json-cursor_parameter": "after"}).status_code == 302
    row.refresh_from_db()
    assert (row.settings, row.cursor) == ({"cursor_parameter": "after"}, None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"url": "https://10.0.0.1/feed"}, "10.0.0.1 is not a public address"),
        ({"kind": "oai_pmh", "oai_pmh-set": "a b"}, "set"),
        ({"kind": "gopher"}, "not one of the available choices"),
        ({"cron": "at noon"}, "not a cron expression"),
        ({"name": "Two words"}, "lower-case letters"),
        ({"name": "there"}, "source named 'there' already exists"),
    ],
)
def test_what_is_wrong_is_named_at_its_field(curator, change, message) -> None:
    source("there")
    answer = curator.post(f"{SOURCES}/new", values("https://example.org/feed") | change)
    assert answer.status_code == 422
    assert message in words(answer)
    assert Source.objects.count() == 1


def test_a_trial_says_why_there_is_no_page(curator, feed, monkeypatch) -> None:
    feed.before = lambda request: Response(404, b"")
    data = values(feed.url, **{"try": "1"})
    assert "answered 404: check its address" in words(curator.post(f"{SOURCES}/new", data))
    feed.before = lambda request: Response(200, b"<html>")
    assert "sent a web page or XML" in words(curator.post(f"{SOURCES}/new", data))
    monkeypatch.setattr(trial, "SECONDS", 0.0)
    assert "sent no page within 0 seconds" in words(curator.post(f"{SOURCES}/new", data))
