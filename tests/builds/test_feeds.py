from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import quote
from xml.etree.ElementTree import fromstring

import feedparser
import pytest
from django.test import Client

from tailrace.domains.builds.models import Project
from tailrace.events.publish import NewEvent, publish

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/feeds/projects/home:alice.atom"
WHEN = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.fixture
def commit(run_jobs: Callable) -> Callable[..., None]:
    def happen(**payload: str) -> None:
        full = {"project": "home:alice", "package": "hello", "user": "bob", "rev": "2"} | payload
        publish([NewEvent("builds.commit", full, source="obs:main:1", occurred_at=WHEN)])
        run_jobs("builds.project_log")

    return happen


def read(client: Client, url: str = URL) -> feedparser.FeedParserDict:
    answer = client.get(url)
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("application/atom+xml")
    feed = feedparser.parse(answer.content)
    assert not feed.bozo, feed.get("bozo_exception")
    return feed


def test_a_reader_sees_the_latest_commits_newest_first(client: Client, commit: Callable) -> None:
    for number in range(55):
        commit(rev=str(number), comment=f"change {number}\nand more", requestid="42")
    feed = read(client)
    assert feed.feed.title == "Commits in home:alice"
    assert len(feed.entries) == 50
    newest = feed.entries[0]
    assert newest.title == "hello: change 54"
    assert newest.author == "bob"
    assert "Revision 54 by bob, request 42" in newest.summary
    assert newest.updated.startswith("2026-11-20T12:00:00")
    assert len({entry.id for entry in feed.entries}) == 50


def test_the_entries_keep_their_ids_when_the_address_changes(
    client: Client, commit: Callable, settings
) -> None:
    commit()
    settings.PUBLIC_URL = "https://builds.example.org:8443"
    first = read(client)
    settings.PUBLIC_URL = "http://builds.example.org"
    assert [entry.id for entry in read(client).entries] == [entry.id for entry in first.entries]
    assert first.entries[0].link.startswith("https://builds.example.org:8443/feeds/projects/")


def test_an_unchanged_feed_is_answered_with_304(client: Client, commit: Callable) -> None:
    commit()
    first = client.get(URL)
    again = {"If-None-Match": first["ETag"], "If-Modified-Since": first["Last-Modified"]}
    assert client.get(URL, headers=again).status_code == 304
    dated = {"If-Modified-Since": first["Last-Modified"]}
    assert client.get(URL, headers=dated).status_code == 304
    commit(rev="3")
    assert client.get(URL, headers=again).status_code == 200


def test_characters_that_xml_forbids_are_left_out(client: Client, commit: Callable) -> None:
    commit(comment="a\x01b \x0c ]]> <b>&amp;\ufffe\U0001f600", user="b\x02ob", package="he\x1fllo")
    entry = read(client).entries[0]
    assert entry.title.startswith("hello: ab")
    assert "\U0001f600" in entry.title
    assert entry.author == "bob"
    assert fromstring(client.get(URL).content) is not None


def test_an_empty_comment_and_a_missing_user_are_allowed(client: Client, commit: Callable) -> None:
    commit(comment="  \n ", user="")
    entry = read(client).entries[0]
    assert entry.title == "hello: new revision"
    assert entry.author == "unknown"


def test_other_projects_and_events_are_not_in_the_feed(
    client: Client, commit: Callable, run_jobs: Callable
) -> None:
    commit()
    commit(project="home:alice:sub")
    publish([NewEvent("builds.update_package", {"project": "home:alice", "package": "x"})])
    run_jobs("builds.project_log")
    assert len(read(client).entries) == 1


def test_a_known_project_without_commits_has_an_empty_feed(client: Client) -> None:
    Project.objects.create(backend="main", name="home:new")
    assert read(client, "/feeds/projects/home:new.atom").entries == []


@pytest.mark.parametrize("name", ["nosuch", "a\nb", "<script>", "x" * 3000])
def test_an_unknown_project_is_not_found(client: Client, name: str) -> None:
    assert client.get(f"/feeds/projects/{quote(name)}.atom").status_code == 404


def test_the_feed_can_only_be_read(client: Client, commit: Callable) -> None:
    commit()
    assert client.post(URL).status_code == 405
    assert client.head(URL).status_code == 200
