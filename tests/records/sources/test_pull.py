"""Of each pull: pages are stored once, errors are seen at the source, its work is bounded."""

import gzip
import threading
from datetime import UTC, datetime

import pytest
from django.db import connection

from tailrace.db.query import execute
from tailrace.domains.records.handlers.pull_from_source import ERRORS_TO_FAIL, RequestSource
from tailrace.domains.records.models import Deposition, Source
from tailrace.domains.records.sources import fetch
from tailrace.domains.records.sources.formats import HarvestedRecord, Page
from tailrace.domains.records.sources.requests import (
    NotActive,
    request_pull,
    schedule_name,
    sync_schedules,
)
from tailrace.domains.records.sources.store import ReadSource, SourceChanged, store_page
from tailrace.events.models import Event
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job, Schedule
from tailrace.jobs.runtime.states import State
from tests.records.sources.conftest import PULL
from tests.servers.web import Response, closed_port

pytestmark = pytest.mark.django_db(transaction=True)

XML = b'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">%b</OAI-PMH>'
BOMB = (
    b'<?xml version="1.0"?><!DOCTYPE b [<!ENTITY a "ha">'
    + b"".join(b'<!ENTITY a%d "&a%d;&a%d;">' % (n + 1, n, n) for n in range(9))
    + b"]><b>&a9;</b>"
)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Response(200, b""), "sent an empty response"),
        (Response(200, b"<!DOCTYPE html><title>x</title>"), "sent a web page (HTML), not OAI-PMH"),
        (Response(200, (XML % b"<ListRecords>")[:-20]), "ends too early"),
        (Response(200, b"<rss></rss>"), "not OAI-PMH, but <rss>"),
        (Response(200, b"PK\x03\x04"), "sent a response that is not XML"),
        (Response(200, BOMB), "sent XML with a DTD, which is not allowed"),
        (Response(200, b"x" * 5_100_000), "a page of over 5,000,000 bytes"),
        (Response(200, XML % b""), "has the granularity ''"),
        (Response(200, b"x" * 100, {"Content-Encoding": "gzip"}), "damaged gzip"),
        (Response(200, b"x", {"Content-Encoding": "br"}), "compresses its pages with 'br'"),
        (Response(500), "answered 500"),
        (Response(404), "answered 404: check its address"),
        (Response(302, b"", {"Location": "/oai"}), "redirects more than 3 times"),
        (Response(302, b"", {"Location": "http://10.0.0.1/"}), "RECORDS_LOCAL_SOURCES"),
        (Response(302, b"", {"Location": "file:///etc/passwd"}), "not supported"),
        (Response(302), "answered 302 without a Location header"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_at_the_source_is_seen_there(
    repository, oai_source, pull, answer, message
) -> None:
    repository.before = lambda request: answer
    job = pull(oai_source)
    assert message in oai_source.last_error
    assert job.state in (State.PENDING, State.FAILED)
    assert job.attempt <= 1
    assert len(repository.requests) <= fetch.MAX_REDIRECTS + 1
    assert Deposition.objects.count() == 0


def test_a_gzip_bomb_is_not_unpacked(repository, oai_source, pull) -> None:
    bomb = Response(200, gzip.compress(bytes(50_000_000)), {"Content-Encoding": "gzip"})
    repository.before = lambda request: bomb
    pull(oai_source)
    assert "a page of over 5,000,000 bytes" in oai_source.last_error


def test_packed_pages_are_read(repository, oai_source, pull) -> None:
    repository.gzips = True
    repository.add("oai:1", title="a", creator="x")
    assert pull(oai_source).result["submitted"] == 1


def test_a_source_that_is_away_is_tried_again_and_then_fails(
    repository, oai_source, pull, clock
) -> None:
    repository.before = lambda request: Response(200, b"")
    for number in range(1, ERRORS_TO_FAIL):
        assert pull(oai_source).state == State.PENDING
        assert oai_source.errors_in_row == number
        clock.step(4000)
    assert pull(oai_source).state == State.FAILED
    repository.before = lambda request: None
    repository.add("oai:1", title="a", creator="x")
    assert pull(oai_source).result["submitted"] == 1
    assert (oai_source.errors_in_row, oai_source.last_error) == (0, "")


def test_an_address_where_nothing_listens(oai_source, pull, settings) -> None:
    url = f"http://127.0.0.1:{closed_port()}"
    settings.RECORDS_LOCAL_SOURCES = [url]
    Source.objects.update(url=f"{url}/oai")
    pull(oai_source)
    assert "refused" in oai_source.last_error.lower() or "failed" in oai_source.last_error.lower()


def page(*identifiers: str, cursor: int = 1) -> Page:
    records = [HarvestedRecord(name, metadata={"title": name}) for name in identifiers]
    return Page({"next": str(cursor)}, records)


def read_source(source: Source) -> ReadSource:
    source.refresh_from_db()
    return ReadSource(source.pk, source.name, source.url, source.cursor)


def test_a_page_and_its_cursor_are_stored_together_or_not_at_all(json_source) -> None:
    """The trigger fails where the events of the page are recorded."""
    before = read_source(json_source)
    execute("CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'no'; END$$")
    execute(
        "CREATE TRIGGER fail BEFORE INSERT ON tailrace_events_event FOR EACH ROW"
        " EXECUTE FUNCTION fail()"
    )
    try:
        with pytest.raises(Exception, match="no"):
            store_page(before, page("a", "b"), None)
    finally:
        execute("DROP FUNCTION fail() CASCADE")
    assert read_source(json_source) == before
    assert Deposition.objects.count() == 0
    assert store_page(before, page("a", "b"), None).submitted == 2
    assert read_source(json_source).cursor == {"next": "1"}
    assert Event.objects.filter(type="records.deposition_submitted").count() == 2


def test_a_page_that_another_job_has_stored_is_refused(json_source) -> None:
    """So does a worker that was away for longer than its lease."""
    before = read_source(json_source)
    store_page(before, page("a"), None)
    with pytest.raises(SourceChanged):
        store_page(before, page("a", "z"), None)
    assert list(Deposition.objects.values_list("identifier", flat=True)) == ["feed:a"]


def test_two_who_store_the_same_page_store_it_once(json_source) -> None:
    before = read_source(json_source)
    outcomes: list[str] = []

    def store() -> None:
        try:
            store_page(before, page("a", "b", "c"), None)
            outcomes.append("stored")
        except SourceChanged:
            outcomes.append("refused")
        finally:
            connection.close()

    threads = [threading.Thread(target=store) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(outcomes) == ["refused", "refused", "stored"]
    assert Deposition.objects.count() == 3


@pytest.mark.parametrize("day", [None, datetime(2026, 3, 1, tzinfo=UTC)])
def test_a_record_is_a_new_version_only_if_it_changed(json_source, day) -> None:
    """With datestamps of a day, too: all versions have the same."""

    def submit(*titles: str) -> None:
        source = read_source(json_source)
        cursor = {"next": str(int((source.cursor or {"next": 0})["next"]) + 1)}
        records = [HarvestedRecord("a", day, metadata={"title": title}) for title in titles]
        store_page(source, Page(cursor, records), None)

    submit("a")
    submit("a")
    assert Deposition.objects.count() == 1
    submit("other", "a")
    submit("a")
    versions = Deposition.objects.order_by("datestamp")
    assert [row.metadata["title"] for row in versions] == ["a", "other", "a"]


def test_a_pull_goes_on_where_its_predecessor_ended(feed, json_source, pull) -> None:
    """As after a crash: the first page is stored, and its job runs again."""
    for number in range(20):
        feed.add(str(number), title=f"Series {number}", creators=["x"])
    first = Page({"next": "10"}, [HarvestedRecord(str(n)) for n in range(10)])
    store_page(read_source(json_source), first, None)
    assert pull(json_source).result["submitted"] == 10
    assert feed.requests == ["10", "20"]


def test_requests_of_one_source_are_merged_while_none_has_begun(json_source) -> None:
    for _ in range(3):
        request_pull(json_source.pk)
    pending = Job.objects.filter(handler=PULL, state=State.PENDING)
    assert [job.unique_key for job in pending] == [f"source/{json_source.pk}"]


def test_each_active_source_has_a_schedule(feed, json_source, run_jobs) -> None:
    sync_schedules([json_source])
    schedule = Schedule.objects.get(name=schedule_name(json_source.pk))
    assert (schedule.handler, schedule.cron) == (RequestSource.name, "0 3 * * *")
    enqueue(schedule.handler, schedule.payload)
    run_jobs(RequestSource.name, PULL)
    assert feed.requests == [""]
    json_source.is_active = False
    json_source.save()
    sync_schedules([json_source])
    assert not Schedule.objects.filter(name=schedule_name(json_source.pk), enabled=True).exists()
    with pytest.raises(NotActive, match="is paused"):
        request_pull(json_source.pk)
    enqueue(RequestSource, {"source": json_source.pk})
    run_jobs(RequestSource.name)
    assert Job.objects.filter(handler=RequestSource.name).latest("pk").state == State.SKIPPED


def test_settings_that_no_longer_fit_fail_with_the_field(json_source, pull) -> None:
    Source.objects.update(settings={"colour": "red"})
    assert pull(json_source).state == State.FAILED
    assert "colour" in json_source.last_error
