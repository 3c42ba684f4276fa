"""Attacks by those who make and try sources of records: what an attacker got is in the names."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from tailrace.domains.records.models import Deposition, Source
from tailrace.domains.records.sources.fetch import MAX_PAGE_BYTES, origin
from tailrace.domains.records.sources.requests import PULL, request_pull
from tailrace.domains.records.sources.upkeep import changes, trial
from tailrace.jobs.models import Job, Schedule
from tailrace.net.sample_server import Response
from tests.records.kit import source
from tests.security.test_sources_of_records import INSIDE
from tests.servers.json_feed import FeedServer, feed_server
from tests.servers.oai_pmh import Repository, oai_repository
from tests.web.program import Program, problem, program
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db
SOURCES = "/records/sources"
SCOPES = ("records:read_sources", "records:write_sources")
MAY = (changes.VIEW, changes.ADD, changes.CHANGE)
TOKEN = "s3cret-in-the-query"
WRITES = ["pull", "pause", "resume", "restart"]


@pytest.fixture
def curator() -> Program:
    return program("curator", *SCOPES, may=MAY)


@pytest.fixture
def inside() -> Iterator[Repository]:
    """A server within the network of the operator, which no setting allows."""
    with oai_repository() as repository:
        repository.add("oai:secret", title="Secret", creator="x")
        yield repository


@pytest.fixture
def outside(settings: Settings) -> Iterator[FeedServer]:
    """The attacker's server, which stands for a public one."""
    with feed_server() as feed:
        settings.RECORDS_LOCAL_SOURCES = [origin(feed.url)]
        settings.RECORDS_REQUESTS_PER_SECOND = 1000.0
        yield feed


def body(url: str, **more: object) -> dict[str, object]:
    return {"kind": "json", "address": url, **more}


@pytest.mark.parametrize("url", INSIDE)
def test_an_address_inside_was_tried_made_or_put_into_a_source(url: str, curator: Program) -> None:
    row = source("mine", kind="json", url="https://example.org/feed")
    for answer in (
        curator.post(f"{SOURCES}/try", body(url)),
        curator.post(SOURCES, body(url, name="library")),
        curator.patch(f"{SOURCES}/{row.pk}", {"address": url}),
    ):
        assert "#/address" in str(problem(answer, 422, "invalid")["errors"])
    row.refresh_from_db()
    assert row.url == "https://example.org/feed"
    assert Source.objects.count() == 1


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fd00::1"])
def test_a_name_that_leads_inside_was_read(
    address: str, curator: Program, run_jobs: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is the attacker's, and so is its DNS: it has a public address as well."""
    lookups: list[str] = []

    def resolved(host: str, port: int, *args: object, **kwargs: object) -> list[object]:
        lookups.append(host)
        public = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", port))
        return [public, (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    url = "https://feed.attacker.example/feed"
    assert curator.post(SOURCES, body(url, name="library")).status_code == 201
    row = Source.objects.get()
    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    tried = curator.post(f"{SOURCES}/try", body(url)).json()
    assert "not a public address" in tried["problem"]
    request_pull(row.pk)
    run_jobs(PULL)
    row.refresh_from_db()
    assert "not a public address" in row.last_error
    assert Job.objects.get(handler=PULL).state == "failed"
    assert set(lookups) == {"feed.attacker.example"}


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_led_a_trial_inside(
    status: int, curator: Program, inside: Repository, outside: FeedServer
) -> None:
    outside.before = lambda request: Response(status, b"", {"Location": inside.url})
    tried = curator.post(f"{SOURCES}/try", body(outside.url)).json()
    assert tried["problem"]
    assert tried["records"] == []
    assert outside.requests
    assert inside.requests == []


@pytest.mark.parametrize("missing", MAY)
def test_a_permission_too_few_was_enough(missing: str, outside: FeedServer) -> None:
    """Whoever has the scopes of a token has not the rights of a curator."""
    mallory = program("mallory", *SCOPES, may=tuple({*MAY} - {missing}))
    row = source("mine", kind="json", url=outside.url)
    page = Visitor(mallory.user)
    refused = [
        (changes.VIEW, mallory.get(SOURCES), page.get(SOURCES)),
        (changes.VIEW, mallory.get(f"{SOURCES}/{row.pk}"), page.get(f"{SOURCES}/{row.pk}")),
        (changes.VIEW, mallory.get(SOURCES), page.get(f"{SOURCES}/{row.pk}/now")),
        (
            changes.ADD,
            mallory.post(SOURCES, body(outside.url, name="library")),
            page.post(f"{SOURCES}/new", body(outside.url, name="library")),
        ),
        (
            changes.CHANGE,
            mallory.patch(f"{SOURCES}/{row.pk}", {"cron": "0 5 * * *"}),
            page.post(f"{SOURCES}/{row.pk}/edit", {"cron": "0 5 * * *"}),
        ),
    ]
    for verb in WRITES:
        path = f"{SOURCES}/{row.pk}/{verb}"
        refused.append((changes.CHANGE, mallory.post(path), page.post(path)))
    for permission, answer, shown in refused:
        if permission == missing:
            problem(answer, 403, "permission-missing")
            assert shown.status_code == 403
    if missing != changes.ADD:
        row.refresh_from_db()
        assert (row.cron, row.is_active) == ("0 3 * * *", True)
        assert not Job.objects.filter(handler=PULL).exists()


def test_whoever_may_only_look_tried_an_address(outside: FeedServer) -> None:
    viewer = program("viewer", *SCOPES, may=(changes.VIEW,))
    problem(viewer.post(f"{SOURCES}/try", body(outside.url)), 403, "permission-missing")
    assert outside.requests == []


def test_a_token_to_read_wrote() -> None:
    reader = program("reader", "records:read_sources", may=MAY)
    row = source("mine")
    problem(reader.post(f"{SOURCES}/try", body("https://example.org/")), 403, "scope-missing")
    for verb in WRITES:
        problem(reader.post(f"{SOURCES}/{row.pk}/{verb}"), 403, "scope-missing")
    problem(reader.patch(f"{SOURCES}/{row.pk}", {"is_active": False}), 403, "scope-missing")
    assert not Job.objects.filter(handler=PULL).exists()


def test_the_secret_in_an_address_was_shown_to_those_who_only_look() -> None:
    row = source("mine", kind="json", url=f"https://example.org/feed?key={TOKEN}")
    viewer = program("viewer", *SCOPES, may=(changes.VIEW,))
    page = Visitor(viewer.user)
    for answer in (
        viewer.get(SOURCES), viewer.get(f"{SOURCES}/{row.pk}"), page.get(SOURCES),
        page.get(f"{SOURCES}/{row.pk}"), page.get(f"{SOURCES}/{row.pk}/now"),
    ):  # fmt: skip
        assert answer.status_code == 200
        assert "https://example.org" in answer.content.decode()
        assert TOKEN not in answer.content.decode()


def test_a_source_brought_html_into_the_pages(curator: Program, outside: FeedServer) -> None:
    html = "<script>alert(1)</script>"
    outside.add(html, title=html, creators=[html], language=html[:20])
    data = {"name": "x", "kind": "json", "url": outside.url, "cron": "0 3 * * *", "try": "1"}
    tried = Visitor(curator.user).post(f"{SOURCES}/new", data)
    assert html in words(tried) or "&lt;script&gt;alert(1)" in tried.content.decode()
    assert "<script>alert" not in tried.content.decode()
    row = source("mine", url=outside.url, last_error=html, cursor={"next": html})
    for path in (SOURCES, f"{SOURCES}/{row.pk}"):
        assert "<script>alert" not in Visitor(curator.user).get(path).content.decode()


def test_a_huge_page_filled_the_answer_of_a_trial(curator: Program, outside: FeedServer) -> None:
    item = {"id": "x", "metadata": {"title": "t" * 900_000, "creators": [""] * 1000}}
    page = {"items": [{**item, "id": str(n)} for n in range(5)], "next": None}
    outside.before = lambda request: Response(200, json.dumps(page).encode())
    answer = curator.post(f"{SOURCES}/try", body(outside.url))
    assert answer.json()["read"] == 5
    assert len(answer.content) < 10_000
    outside.before = lambda request: Response(200, b" " * (MAX_PAGE_BYTES + 1))
    assert (
        "sent a page of over" in curator.post(f"{SOURCES}/try", body(outside.url)).json()["problem"]
    )


def test_an_answer_of_many_records_was_shown_in_full(curator: Program, outside: FeedServer) -> None:
    outside.page_size = 5000
    for number in range(5000):
        outside.add(str(number), title=f"Series {number}", creators=["x"])
    tried = curator.post(f"{SOURCES}/try", body(outside.url)).json()
    assert (tried["submitted"], len(tried["records"])) == (5000, trial.SHOWN)
    assert not Deposition.objects.exists()


def test_slow_trials_held_every_thread(
    curator: Program, outside: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(trial.AT_ONCE):
        assert trial._trial_slots.acquire(blocking=False)
    try:
        problem(curator.post(f"{SOURCES}/try", body(outside.url)), 503, "busy")
        assert outside.requests == []
    finally:
        for _ in range(trial.AT_ONCE):
            trial._trial_slots.release()
    release = threading.Event()
    outside.before = lambda request: release.wait(10) and None
    monkeypatch.setattr(trial, "SECONDS", 0.3)
    try:
        tried = curator.post(f"{SOURCES}/try", body(outside.url)).json()
        assert tried["problem"] == "The source sent no page within 0.3 seconds"
    finally:
        release.set()
    monkeypatch.undo()
    outside.before = lambda request: None
    assert curator.post(f"{SOURCES}/try", body(outside.url)).json()["problem"] == ""


def test_trials_cost_as_little_as_other_requests(curator: Program, outside: FeedServer) -> None:
    before = _left(curator.get(f"{SOURCES}/{source('mine').pk}"))
    after = _left(curator.post(f"{SOURCES}/try", body(outside.url)))
    assert before - after >= trial.COST - 5, "less what came back meanwhile"


def _left(answer: Any) -> int:
    return int(answer["RateLimit"].split("r=")[1].split(";")[0])


def test_sources_were_made_without_end(curator: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MOST_SOURCES", 2)
    for name in ("a", "b"):
        made = curator.post(SOURCES, body("https://example.org/", name=name))
        assert made.status_code == 201
    problem(curator.post(SOURCES, body("https://example.org/", name="c")), 409, "too-many")
    data = {"name": "c", "kind": "json", "url": "https://example.org/", "cron": "0 3 * * *"}
    assert Visitor(curator.user).post(f"{SOURCES}/new", data).status_code == 409
    assert Source.objects.count() == Schedule.objects.filter(owner__startswith="records:").count()
    assert Source.objects.count() == 2


@pytest.mark.parametrize(
    "change",
    [
        {"name": "a" * 61}, {"name": "a\x00"}, {"address": "https://example.org/" + "a" * 2000},
        {"cron": "0 3 * * *" + " " * 200}, {"cron": ",".join(["1"] * 101) + " * * * *"},
        {"settings": {"cursor_parameter": "a" * 51}}, {"settings": {str(n): n for n in range(60)}},
        {"kind": "x" * 51}, {"settings": {"cursor_parameter": "a\x00"}}, {"is_active": False},
    ],
)  # fmt: skip
def test_values_of_any_size_were_stored(change: dict[str, object], curator: Program) -> None:
    answer = curator.post(SOURCES, body("https://example.org/", name="library") | change)
    assert answer.status_code == 422, answer.content
    assert not Source.objects.exists()


def test_a_source_took_the_records_of_another_by_its_name(
    curator: Program, outside: FeedServer
) -> None:
    row = source("victim", kind="json", url="https://example.org/feed")
    answer = curator.post(SOURCES, body(outside.url, name="victim"))
    assert "a source named 'victim' already exists" in problem(answer, 422, "invalid")["detail"]
    problem(curator.patch(f"{SOURCES}/{row.pk}", {"name": "other"}), 422, "invalid")


def test_a_space_in_an_allowed_address_reached_the_database(
    curator: Program, outside: FeedServer
) -> None:
    for end in ("\x00", " x", "\r\nHost: inside"):
        problem(curator.post(SOURCES, body(outside.url + end, name="library")), 422, "invalid")
    assert not Source.objects.exists()
