"""Permissions of each URL and each operation of the API, for each kind of user.

The tables are permissions.toml, here and in the folders of the domains. A URL or operation without
a row fails.
"""

import itertools
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import URLResolver, get_resolver

from tailrace.db.query import database_now
from tailrace.domains.builds.models import Project
from tailrace.jobs.models import Job, Replay
from tailrace.net.encryption import encrypt
from tailrace.net.signing import new_secret
from tailrace.subscriptions.channels.mail import unsubscribe
from tailrace.subscriptions.channels.rss.feeds import make_feed
from tailrace.subscriptions.channels.web import inbox
from tailrace.subscriptions.channels.webhook.history import recovery
from tailrace.subscriptions.channels.webhook.operations import endpoints
from tailrace.subscriptions.models import (
    Block,
    Delivery,
    Device,
    Endpoint,
    EventSubscription,
    InboxItem,
    Notification,
)
from tailrace.web.accounts import tokens
from tailrace.web.api.site import api
from tests.jobs.admin.flows import chain
from tests.owned_objects import of_all_domains
from tests.sandbox.handlers import Requested
from tests.subscriptions.sample_domain import FIRST, assign_role, person, publish_event, subscribe
from tests.web.program import make_token
from tests.web.visitor import confirm_session


def _table() -> dict[str, Any]:
    """Return our table with the rows, bodies and rights that the domains add in theirs."""
    ours = Path(__file__).parent / "permissions.toml"
    table = tomllib.loads(ours.read_text())
    for path in sorted(ours.parent.parent.glob("*/permissions.toml")):
        if path != ours:
            theirs = tomllib.loads(path.read_text())
            assert not set(theirs["may"]) & set(table["may"]), f"{path}: a row that is there"
            table["may"] |= theirs["may"]
            table["bodies"] |= theirs.get("bodies", {})
            table["operator_has_all_of"] += theirs.get("operator_has_all_of", [])
    return table


TABLE = _table()
WHO = tuple(TABLE["who"])
REFUSED = ("login", "no", "nothing")
ROWS: dict[str, dict[str, str]] = {
    key: dict(zip(WHO, words.split(), strict=True)) for key, words in TABLE["may"].items()
}
STARS = {key: re.compile(re.escape(key).replace(r"\*", "[a-z_|]+")) for key in ROWS}
BODIES: dict[str, Any] = TABLE["bodies"]


NOBODYS = 999_999_999
"""Stands in an address where World makes no value: nothing has this id."""


def _patterns(resolver: Any, prefix: str = "/") -> Iterator[str]:
    for pattern in resolver.url_patterns:
        whole = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _patterns(pattern, whole)
        else:
            yield whole


PATTERNS = list(dict.fromkeys(_patterns(get_resolver())))
OPERATIONS = [
    f"{method.upper()} {path.replace('{', '<int:').replace('}', '>')}"
    for path, methods in api.get_openapi_schema()["paths"].items()
    for method in methods
]


@cache
def row_of(method: str, pattern: str) -> str | None:
    """Return the key of its row: its own, or that of a matching pattern with a star."""
    if (own := f"{method} {pattern}") in ROWS:
        return own
    return next((key for key in ROWS if STARS[key].fullmatch(own)), None)


def _requests() -> Iterator[tuple[str, str, str]]:
    """Yield each request of the table: method, pattern, key of the row."""
    for method in ("GET", "POST", "PATCH", "DELETE"):
        for pattern in PATTERNS:
            if key := row_of(method, pattern):
                yield method, pattern, key


def test_each_url_has_a_row() -> None:
    patterns = {pattern for _, pattern, _ in _requests()}
    missing = [pattern for pattern in PATTERNS if pattern not in patterns]
    assert not missing, "say in permissions.toml who may open these"


def test_each_operation_of_the_api_has_its_own_row() -> None:
    assert [operation for operation in OPERATIONS if operation not in ROWS] == []
    ours = [key for key in ROWS if key.split()[1].startswith("/api/")]
    docs = {"GET /api/docs", "GET /api/docs/<slug:slug>", "GET /api/openapi.json"}
    others = {"GET /api/", *docs, r"GET /api/^[\s\S]*$"}
    assert set(ours) - set(OPERATIONS) == others, "what is gone has no row"


def test_each_row_has_a_url() -> None:
    used = {key for _, _, key in _requests()}
    assert set(ROWS) == used
    assert set(BODIES) <= set(ROWS)


class World:
    """Everybody, and something of each kind that belongs to the owner."""

    def __init__(self) -> None:
        self.people = {who: self._person(who) for who in WHO if who != "anonymous"}
        self.tokens = {
            who: make_token(user, "test", tokens.scopes())[1] for who, user in self.people.items()
        }
        self.values = self._values(self.people["owner"])

    def _person(self, who: str) -> User:
        user = person(who)
        user.is_staff = who in ("staff", "operator", "admin")
        user.is_superuser = who == "admin"
        user.save()
        if who == "operator":
            apps = TABLE["operator_has_all_of"]
            user.user_permissions.set(Permission.objects.filter(content_type__app_label__in=apps))
        return user

    def _values(self, owner: User) -> dict[str, Any]:
        """By the word of an address before it: a value that there is."""
        assign_role(FIRST, owner)
        event = publish_event()
        job = Job.objects.get(event=event.id, handler="subscriptions.notify").pk
        inbox.put(event, user=owner, group=None, role=FIRST)
        Notification.objects.create(event_id=event.id, user=owner, role=FIRST)
        endpoint = Endpoint.objects.create(
            user=owner, url="https://[::1]:1/", secret=encrypt(new_secret())
        )
        delivery = Delivery.objects.create(
            endpoint=endpoint, message_id="msg_1", attempt=1, milliseconds=1, outcome="failed"
        )
        of_domains = of_all_domains(owner)
        # The devices of timelines and those that get push messages have one word in addresses.
        push = {"user": owner, "url": "https://push.example.org/1"}
        Device.objects.create(pk=of_domains["devices"], **push)
        default = EventSubscription.objects.filter(user=None, group=None).first()
        return {
            "apitoken": make_token(owner, "a third", tokens.scopes())[0].pk,
            "events": event.id,
            "event": event.id,
            "why": event.id,
            "job": job,
            "jobs": job,
            "flow": (flow := chain(2).pk),
            "flows": flow,
            "queue": Requested.name,
            "all": "replay",
            "replays": Replay.objects.create(what="all").pk,
            "subscriptions": subscribe(user=owner).pk,
            "eventsubscription": default.pk,
            "blocks": Block.objects.create(user=owner, blocked=self.people["other"]).pk,
            "inbox": InboxItem.objects.get(user=owner).pk,
            "feeds": make_feed(owner)[0].pk,
            "me": make_feed(owner)[1].split("/")[-1].removesuffix(".atom"),
            "endpoints": endpoint.pk,
            "deliveries": delivery.pk,
            "tests": (test := endpoints.send_test(endpoint)),
            "messages": test,
            "recoveries": recovery.start(endpoint, "failed", database_now(), owner),
            "tokens": make_token(owner, "another", tokens.scopes())[0].pk,
            "user": owner.pk,
            "group": Group.objects.create(name="crew").pk,
            "r": ContentType.objects.get_for_model(User).pk,
            "projects": Project.objects.create(name="devel", exists=True).name,
            **of_domains,
            "docs": "jobs",
            "unsubscribe": unsubscribe.event_url(owner, "stage.premiere", FIRST).split("/")[-1],
        }

    def path(self, pattern: str) -> str:
        """Put values in the places of the parameters."""
        path = re.sub(r"\^\(\?P<app_label>(\w+).*", r"\1/", pattern)
        path = re.sub(r"\(\?P<url>\.\*\)\$|\^\.\*\$", "nothing", path)
        return re.sub(
            r"([\w-]*)/<[^>]+>",
            lambda match: f"{match[1]}/{self.values.get(match[1], NOBODYS)}",
            path,
        )

    def client(self, who: str) -> Client:
        client = Client(raise_request_exception=False)
        if who != "anonymous":
            client.force_login(self.people[who])
            confirm_session(client)
        return client

    def ask(self, client: Client, who: str, method: str, pattern: str) -> HttpResponse:
        """Ask, and undo what came of it. The API is shown a token, the rest a session."""
        body = BODIES.get(f"{method} {pattern}", {})
        extra = {
            "data": body.get("text", ""),
            "content_type": body.get("content_type", "application/json"),
        }
        if who != "anonymous" and pattern.startswith("/api/"):
            extra["headers"] = {"Authorization": f"Bearer {self.tokens[who]}"}
        cookies = client.cookies.copy()
        with transaction.atomic():
            answer = client.generic(method, self.path(pattern), **extra)
            transaction.set_rollback(True)
        client.cookies = cookies
        return answer


def _word(answer: HttpResponse) -> str:
    status = answer.status_code
    if status in (301, 302, 303):
        return "login" if "/login/" in answer["Location"] else "away"
    return "ok" if status < 300 else TABLE["words"].get(str(status), str(status))


@pytest.fixture(scope="module")
def everybody(rows_of_module: None) -> World:
    return World()


@pytest.fixture
def world(db: None, everybody: World) -> World:
    """The same for all tests of this file: what another test changed is rolled back."""
    assign_role(FIRST, everybody.people["owner"])  # roles of the sandbox end with each test
    return everybody


def at_the_border(row: dict[str, str]) -> set[str]:
    """Return the kinds of users on both sides of each change in a row, or the first if all get the
    same answer."""
    changes = (pair for pair in itertools.pairwise(WHO) if row[pair[0]] != row[pair[1]])
    return set(itertools.chain.from_iterable(changes)) or {WHO[0]}


def who_asks(key: str, number: int) -> set[str]:
    """Return the kinds of users that request the URL of this number in a row: those at its border.

    A row with a star is for many models, with pages alike. After two of them, who may most of all
    that are refused requests the others: one that is open to too many is found.
    """
    users = at_the_border(ROWS[key])
    refused = [who for who in WHO if who in users and ROWS[key][who] in REFUSED]
    return {refused[-1]} if "*" in key and number >= 2 and refused else users


@pytest.mark.slow
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("who", WHO)
def test_everybody_may_do_what_the_table_allows(who: str, every: bool, world: World) -> None:
    """The short form requests each URL as the kinds of users between which its answer changes."""
    client = world.client(who)
    numbers = defaultdict[str, Iterator[int]](itertools.count)
    answers = {
        f"{method} {pattern}": (_word(world.ask(client, who, method, pattern)), ROWS[key][who])
        for method, pattern, key in _requests()
        if every or who in who_asks(key, next(numbers[key]))
    }
    assert answers
    assert {key: both for key, both in answers.items() if both[0] != both[1]} == {}
