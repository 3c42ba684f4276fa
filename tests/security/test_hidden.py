"""What a stranger got of a hidden project: one planted secret, and every way out."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from django.utils import timezone

from tailrace.domains.builds.models import (
    Project,
    ProjectLogEntry,
    RoleHolder,
    Watch,
)
from tailrace.domains.builds.settings import BuildsSettings
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, Recorded, publish
from tailrace.jobs.destinations.hidden import HIDDEN
from tailrace.jobs.models import Job
from tailrace.subscriptions.api import changes
from tailrace.subscriptions.channels.rss.feeds import make_feed
from tailrace.subscriptions.models import (
    Digest,
    EventSubscription,
    FeedItem,
    InboxItem,
    Notification,
    Preferences,
)
from tests.servers.web import Response, serving
from tests.subscriptions.api.test_changes import all_visible
from tests.web.program import Program, allow, program

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "home:planted"
OPEN = "home:open"
CHANNELS = ("mail", "rss", "web", "webhook", "push", "sms")


@pytest.fixture(autouse=True)
def _as_installed(settings, tmp_path: Path) -> None:
    settings.OBS_UNKNOWN_PROJECTS = "hidden"
    settings.OBS_BACKENDS = {"main": "http://127.0.0.1:9"}
    settings.BUS_BACKENDS = {"file": f"file://{tmp_path / 'bus.ndjson'}"}
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    settings.API_RATE = settings.API_BURST = 1_000_000
    settings.USER_RATE = settings.USER_BURST = 1_000_000
    now = timezone.now()
    Project.objects.create(backend="main", name=SECRET, hidden=True, refreshed_at=now)
    Project.objects.create(backend="main", name=OPEN, refreshed_at=now)


def new(type: str, /, source: str = "obs:main:1", **payload: Any) -> NewEvent:
    return NewEvent(f"builds.{type}", payload, source=source)


def comment(project: str, **more: Any) -> NewEvent:
    payload = {"project": project, "id": 1, "commenter": "carl", "comment_body": "hm"} | more
    return new("comment_for_project", **payload)


def planted() -> list[Recorded]:
    """Publish events that name the hidden project in each of the ways that there are."""
    review = {"number": 7, "state": "review", "author": "carl", "reviewers": []}
    return publish(
        [
            comment(SECRET),
            new("commit", project=SECRET, package="p", rev="1", comment=SECRET),
            new("review_wanted", **review, by_project=SECRET),
            new("request_create", **review, actions=[{"sourceproject": SECRET}]),
            new("report_for_project", id=1, reporter="carl", project_name=SECRET),
            new("branch_command", project=OPEN, package="p", targetproject=SECRET),
            comment(SECRET, comment_body="by the API") | _from("api:carl:x"),
        ],
        outside=True,
    )


class _from:
    """`event | _from(source)`: the same event from another source."""

    def __init__(self, source: str) -> None:
        self.source = source

    def __ror__(self, event: NewEvent) -> NewEvent:
        return NewEvent(event.type, event.payload, source=self.source)


@pytest.fixture
def eve() -> User:
    """Watches the hidden project by every channel, and holds no role in it."""
    eve = User.objects.create_user("eve", "eve@example.org", "secret")
    for project in (SECRET, OPEN):
        Watch.objects.create(user=eve, project=project)
    for channel in CHANNELS:
        EventSubscription.objects.create(
            event_type="*", role="project_watcher", channel=channel, user=eve
        )
    return eve


# --- buses ---


def test_a_bus_gets_nothing_of_a_hidden_project(settings, tmp_path: Path, run_jobs) -> None:
    with serving(lambda request: Response(200)) as server:
        settings.BUS_BACKENDS |= {"hook": server.url}
        settings.BUS_WEBHOOK_SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        hidden = planted()
        (shown,) = publish([comment(OPEN)])
        run_jobs("builds.notify_backend")
        sent = [json.loads(line) for line in (tmp_path / "bus.ndjson").read_text().splitlines()]
        assert [line["id"] for line in sent] == [shown.id]
        assert len(server.requests) == 1
        assert SECRET not in str(server.requests)
    jobs = Job.objects.filter(handler="builds.notify_backend", event__in=[e.id for e in hidden])
    assert len(jobs) >= 8
    assert {(job.state, job.error) for job in jobs} == {("skipped", HIDDEN)}


def test_a_bus_takes_hidden_events_only_if_a_setting_says_so(
    settings, tmp_path: Path, run_jobs
) -> None:
    assert BuildsSettings().BUS_TAKES_HIDDEN == []
    assert BuildsSettings().OBS_UNKNOWN_PROJECTS == "hidden"
    settings.BUS_BACKENDS |= {"inside": f"file://{tmp_path / 'inside.ndjson'}"}
    settings.BUS_TAKES_HIDDEN = ["inside"]
    publish([comment(SECRET), comment(OPEN)])
    run_jobs("builds.notify_backend")
    assert SECRET not in (tmp_path / "bus.ndjson").read_text()
    assert SECRET in (tmp_path / "inside.ndjson").read_text()


def test_a_batch_for_the_buses_is_checked_by_one_statement(
    run_jobs, django_assert_max_num_queries: Callable[..., Any]
) -> None:
    publish([comment(OPEN, id=number) for number in range(30)])
    with django_assert_max_num_queries(1_000_000) as queries:
        run_jobs("builds.notify_backend")
    asked = [
        row["sql"] for row in queries.captured_queries if "tailrace_builds_project" in row["sql"]
    ]
    assert 1 <= len(asked) <= 3, asked


# --- feeds ---

CONDITIONS = [
    {},
    {"If-None-Match": "*"},
    {"If-None-Match": '"1-1-1"'},
    {"If-Match": '"x"'},
    {"If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"},
    {"If-Unmodified-Since": "Mon, 01 Jan 1990 00:00:00 GMT"},
]


@pytest.mark.parametrize("headers", CONDITIONS, ids=str)
@pytest.mark.parametrize("method", ["get", "head", "post", "options"])
def test_the_feed_of_a_hidden_project_is_that_of_none(
    client: Client, run_jobs, headers: dict[str, str], method: str
) -> None:
    planted()
    run_jobs("builds.project_log")
    assert ProjectLogEntry.objects.filter(project=SECRET).exists()
    call = getattr(client, method)
    hidden = call(f"/feeds/projects/{SECRET}.atom", headers=headers)
    absent = call("/feeds/projects/home:no-such.atom", headers=headers)
    assert hidden.status_code == absent.status_code
    assert hidden.content.replace(SECRET.encode(), b"") == absent.content.replace(
        b"home:no-such", b""
    )
    assert hidden.headers == absent.headers


def test_a_feed_shows_only_the_backend_where_the_project_is_public(
    settings, client: Client, run_jobs
) -> None:
    settings.OBS_BACKENDS |= {"inside": "http://127.0.0.1:9"}
    Project.objects.create(backend="inside", name=OPEN, hidden=True, refreshed_at=timezone.now())
    publish([new("commit", project=OPEN, package="seen", rev="1")])
    publish([new("commit", "obs:inside:1", project=OPEN, package="planted", rev="1")])
    run_jobs("builds.project_log")
    page = client.get(f"/feeds/projects/{OPEN}.atom").content.decode()
    assert "seen" in page
    assert "planted" not in page


# --- a user: mails, digests, feeds, inbox, webhooks, pages ---


def test_a_watcher_without_a_role_is_told_nothing(
    eve: User, settings, client: Client, run_jobs, clock
) -> None:
    _, address = make_feed(eve)
    planted()
    (shown,) = publish([comment(OPEN)])
    run_jobs()
    clock.step(8 * 86_400)
    run_jobs()
    told = Notification.objects.filter(event__type__startswith="builds.")
    assert set(told.values_list("event_id", flat=True)) == {shown.id}
    assert OPEN in "".join(message.subject + str(message.body) for message in mail.outbox)
    assert SECRET not in "".join(str(message.message()) for message in mail.outbox)
    feed = client.get("/feeds/me/" + address.rsplit("/", 1)[1]).content.decode()
    assert OPEN in feed
    assert SECRET not in feed
    client.force_login(eve)
    for page in ("inbox", "subscriptions", "feeds", "endpoints", "preferences"):
        assert SECRET not in client.get(f"/me/{page}").content.decode(), page


def test_what_was_told_is_taken_back_when_a_project_is_hidden(
    eve: User, client: Client, run_jobs, clock
) -> None:
    Preferences.objects.update_or_create(user=eve)
    EventSubscription.objects.filter(user=eve, channel="mail").update(pace="daily")
    Project.objects.filter(name=SECRET).update(hidden=False)
    _, address = make_feed(eve)
    publish([comment(SECRET)])
    run_jobs()
    assert FeedItem.objects.exists()
    assert InboxItem.objects.exists()
    assert Digest.objects.exists()
    Project.objects.filter(name=SECRET).update(hidden=True)
    clock.step(2 * 86_400)
    run_jobs()
    assert SECRET not in "".join(str(message.message()) for message in mail.outbox)
    assert SECRET not in client.get("/feeds/me/" + address.rsplit("/", 1)[1]).content.decode()
    client.force_login(eve)
    assert SECRET not in client.get("/me/inbox").content.decode()
    assert SECRET not in client.get("/api/inbox").content.decode()


def test_the_inbox_does_not_tell_when_a_hidden_event_was_recorded(
    eve: User, client: Client, run_jobs
) -> None:
    publish([comment(OPEN)])
    run_jobs("subscriptions.notify", "subscriptions.web")
    client.force_login(eve)

    def page() -> str:
        content = client.get("/me/inbox").content.decode()
        ever_new = r'csrfmiddlewaretoken" value="[^"]*"|>(now|\d+ s ago)</time>'
        return re.sub(ever_new, "", content)

    before = page()
    assert 'name="up_to"' in before
    planted()
    assert page() == before


# --- the API ---


@pytest.fixture
def reader() -> Program:
    return program("ann", may=("tailrace_events.view_event", "tailrace_events.view_payload"))


def everything(reader: Program, **query: Any) -> tuple[list[int], int, set[str]]:
    """Follow the feed of changes; return the events, the number of pages, and the positions."""
    ids: list[int] = []
    positions: list[str] = []
    for pages in range(1, 100):
        result = reader.get("/events", **query).json()
        assert SECRET not in json.dumps(result)
        ids += [event["id"] for event in result["events"]]
        query["after"] = result["next"]
        positions.append(result["next"])
        if not result["more"]:
            return ids, pages, {*positions[:-1]}
    raise AssertionError("the feed does not end")


@pytest.mark.parametrize("limit", [1, 2, 50])
def test_no_page_and_no_cursor_locates_a_hidden_event(reader: Program, limit: int) -> None:
    (first,) = publish([comment(OPEN)])
    hidden = [event.id for _ in range(3) for event in planted()]
    (second,) = publish([comment(OPEN, id=2)])
    hidden += [event.id for event in planted()]
    all_visible()
    ids, pages, positions = everything(reader, limit=limit)
    assert ids == [first.id, second.id]
    Event.objects.filter(pk__in=hidden).delete()
    assert everything(reader, limit=limit) == (ids, pages, positions), "as if there were none"
    for id in hidden:
        assert f"{id}]" not in "".join(map(_decoded, positions))


def _decoded(position: str) -> str:
    at = changes.Position.of(position)
    return f"[{at.xact},{at.id}]"


def test_the_end_of_the_feed_does_not_move_with_a_hidden_event(reader: Program) -> None:
    publish([comment(OPEN)])
    all_visible()
    events = planted()
    all_visible()
    end = changes.Position.of(reader.get("/events").json()["next"])
    assert end.id == changes.LAST_ID
    assert end.xact >= max(Event.objects.filter(pk__in=[e.id for e in events]).values_list(
        "xact", flat=True
    ))  # fmt: skip


def test_many_hidden_events_cost_a_bounded_number_of_statements(
    reader: Program, monkeypatch, django_assert_max_num_queries: Callable[..., Any]
) -> None:
    monkeypatch.setattr(changes, "MAX_EXAMINED", 20)
    monkeypatch.setattr(changes, "NEXT_PAGE", 10)
    for _ in range(10):
        planted()
    (shown,) = publish([comment(OPEN)])
    all_visible()
    with django_assert_max_num_queries(30):
        reader.get("/events", limit=1)
    ids, _pages, _positions = everything(reader, limit=1)
    assert ids == [shown.id]


def test_a_hidden_event_is_not_found_and_explains_nothing(reader: Program, eve: User) -> None:
    events = planted()
    absent = reader.get(f"/events/{events[-1].id + 1000}")
    for event in events:
        for query in ({}, {"who": "ann"}):
            answer = reader.get(f"/events/{event.id}", **query)
            assert (answer.status_code, answer.content) == (404, absent.content)


def test_the_cause_of_an_event_is_not_named_if_it_is_hidden(reader: Program) -> None:
    cause = planted()[0]
    (effect,) = publish([NewEvent("builds.update_project_config", {"project": OPEN},
                                  cause_id=cause.id, source="obs:main:1")])  # fmt: skip
    assert reader.get(f"/events/{effect.id}").json()["cause_id"] is None


def test_the_chain_of_a_hidden_event_is_not_found_and_names_it_nowhere(reader: Program) -> None:
    allow(reader.user, "tailrace_jobs.view_job", "tailrace_jobs.view_job_payload")
    (cause,) = publish([comment(OPEN)])
    hidden = [event.id for event in planted()]
    Event.objects.filter(pk__in=hidden).update(cause=cause.id)
    (effect,) = publish([NewEvent("builds.update_project_config", {"project": OPEN},
                                  cause_id=hidden[0], source="obs:main:1")])  # fmt: skip
    absent = reader.get(f"/events/{effect.id + 1000}/chain")
    for id in hidden:
        answer = reader.get(f"/events/{id}/chain")
        assert (answer.status_code, answer.content) == (404, absent.content)
    answer = reader.get(f"/events/{effect.id}/chain")
    assert SECRET not in answer.content.decode()
    rows = answer.json()["events"]
    assert [(row["id"], row["parent"]) for row in rows] == [
        (cause.id, None), (effect.id, cause.id)
    ]  # fmt: skip


def test_a_preview_counts_no_hidden_event(eve: User) -> None:
    planted()
    (shown,) = publish([comment(OPEN)])
    caller = Program(eve)
    subscription = EventSubscription.objects.filter(user=eve, channel="mail").get()
    answer = caller.get(f"/subscriptions/{subscription.pk}/preview").json()
    assert [event["id"] for event in answer["events"]] == [shown.id]
    assert answer["count"] == 1
    assert SECRET not in json.dumps(answer)


def test_who_holds_a_role_or_the_permission_reads_it_by_the_api(reader: Program) -> None:
    event = planted()[0]
    RoleHolder.objects.create(backend="main", project=SECRET, role="reader", user="ann")
    assert reader.get(f"/events/{event.id}").status_code == 200
    auditor = program("bob", may=("tailrace_events.view_event", "tailrace_events.view_hidden"))
    assert auditor.get(f"/events/{event.id}").status_code == 200
