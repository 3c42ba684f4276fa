"""Requests that no budget counted, or counted as too few: what an attacker got is in the names."""

from io import BytesIO

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tailrace.domains.photos.models import Photo
from tailrace.web.api.site import api
from tests.photos.pictures import BERLIN, exif, picture, recent
from tests.subscriptions.sample_domain import person
from tests.web.program import Program, problem, program
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db(transaction=True)

BATCHED = "application/cloudevents-batch+json"


@pytest.fixture
def small_budget(settings, clock) -> None:
    """Ten requests, and no more for a long time."""
    settings.USER_RATE, settings.USER_BURST = 0.001, 10
    clock.stop()


def with_photo(settings) -> tuple[Visitor, str]:
    """A visitor, and the address of a picture that they may see."""
    settings.PHOTOS_DECODERS = 20
    visitor = Visitor(person("ann"))
    file = BytesIO(picture(exif(*BERLIN, recent())))
    assert visitor.post("/photos/upload", {"file": file}).status_code == 302
    return visitor, f"/photos/{Photo.objects.get().pk}/image"


def statements(client: Client, path: str) -> list[str]:
    with CaptureQueriesContext(connection) as seen:
        assert client.get(path).status_code == 200
    return [each["sql"] for each in seen]


def assert_refused(answer: HttpResponse) -> None:
    assert answer.status_code == 429
    assert int(answer["Retry-After"]) > 0


def test_pictures_were_not_counted(settings, request) -> None:
    visitor, address = with_photo(settings)
    request.getfixturevalue("small_budget")
    visitor.user = User.objects.create_user("bob", is_superuser=True)
    visitor.client.force_login(visitor.user)
    assert [visitor.get(address).status_code for _ in range(100)] == [200] * 100
    assert_refused(visitor.get(address))
    assert_refused(visitor.get("/me/feeds"))


def test_the_admin_was_not_counted(small_budget: None) -> None:
    boss = User.objects.create_user("boss", is_staff=True, is_superuser=True)
    visitor, other = Visitor(boss), Visitor(person("ann"))
    assert [visitor.get("/admin/").status_code for _ in range(11)] == [200] * 10 + [429]
    page = visitor.get("/admin/tailrace_jobs/job/")
    assert_refused(page)
    assert "Too many requests" in words(page)
    assert visitor.get("/me/feeds").status_code == 200, "the admin has a budget of its own"
    assert other.get("/admin/").status_code == 302


def test_a_stolen_token_closed_the_admin(small_budget: None) -> None:
    boss = User.objects.create_user("boss", is_staff=True, is_superuser=True)
    thief = Program(boss, "feeds")
    assert [thief.get("/feeds").status_code for _ in range(11)] == [200] * 10 + [429]
    assert Visitor(boss).get("/admin/").status_code == 200


@pytest.mark.parametrize("path", ["/feeds/projects/none.atom", "/feeds/me/none.rss"])
def test_feeds_were_not_counted(small_budget: None, path: str) -> None:
    def status(address: str) -> int:
        return Client(REMOTE_ADDR=address).get(path).status_code

    assert [status("192.0.2.1") for _ in range(12)] == [404] * 10 + [429] * 2
    assert status("192.0.2.2") == 404
    assert [status(f"2001:db8:1:{n}::1") for n in range(12)] == [404] * 10 + [429] * 2
    refused = Client(REMOTE_ADDR="192.0.2.1").get(path, headers={"X-Forwarded-For": "192.0.2.9"})
    assert_refused(refused)


SIGN_IN = ("/accounts/login/", "/accounts/password/reset/", "/accounts/password/reset/x/y/")
UNSUBSCRIBE = "/unsubscribe/forged"


@pytest.mark.parametrize("path", [*SIGN_IN, "/accounts/second-factor/", UNSUBSCRIBE])
def test_pages_for_strangers_were_not_counted(small_budget: None, path: str) -> None:
    client = Client(REMOTE_ADDR="192.0.2.1")
    statuses = [client.get(path).status_code for _ in range(11)]
    assert 429 not in statuses[:10]
    assert statuses[10] == 429
    assert_refused(client.post(path))
    assert client.get("/feeds/projects/none.atom").status_code == 404, "feeds have their own budget"
    assert Client(REMOTE_ADDR="192.0.2.2").get(path).status_code == statuses[0]


def test_readers_of_feeds_do_not_close_the_sign_in_page(small_budget: None) -> None:
    client = Client(REMOTE_ADDR="192.0.2.1")
    assert [client.get("/feeds/projects/none.atom").status_code for _ in range(11)][10] == 429
    assert client.get(SIGN_IN[0]).status_code == 200


def test_invalid_tokens_were_not_counted(small_budget: None) -> None:
    ann = program("ann")
    forged = Client(headers={"Authorization": "Bearer tr_forged"})
    statuses = [forged.get("/api/feeds").status_code for _ in range(11)]
    assert statuses == [401] * 10 + [429]
    assert problem(forged.get("/api/feeds"), 429, "rate-limited")
    assert_refused(forged.get("/api/feeds"))
    assert ann.get("/feeds").status_code == 200, "valid tokens from this address still work"


def test_a_budget_costs_one_statement(settings) -> None:
    visitor, address = with_photo(settings)
    boss = User.objects.create_user("boss", is_staff=True, is_superuser=True)
    for client, path in (
        (visitor.client, "/me/feeds"),
        (visitor.client, address),
        (Visitor(boss).client, "/admin/"),
    ):
        client.get(path)
        budgets = [sql for sql in statements(client, path) if "tailrace_jobs_bucket" in sql]
        assert len(budgets) == 1, path


def test_a_batch_of_events_got_counted_as_one_request(small_budget: None) -> None:
    def batch(count: int) -> list[dict[str, object]]:
        return [
            {"specversion": "1.0", "id": f"{count}-{number}", "source": "/ci",
             "type": "stage.gala", "data": {}}
            for number in range(count)
        ]  # fmt: skip

    ann = program("ann", may=("tailrace_events.add_event",))
    assert ann.post("/events", batch(20), content_type=BATCHED).status_code == 201
    assert ann.post("/events", batch(100), content_type=BATCHED).status_code == 201
    assert ann.post("/events", batch(41), content_type=BATCHED).status_code == 201
    refused = ann.post("/events", batch(61), content_type=BATCHED)
    detail = problem(refused, 429, "rate-limited")["detail"]
    assert "this one counts as 3" in detail
    recorded = ann.post("/events", batch(61)[:0], content_type=BATCHED)
    assert recorded.status_code == 429


def test_the_list_of_all_options_got_counted_as_one_request(small_budget: None) -> None:
    ann = program("ann")
    statuses = [ann.get("/subscriptions/matrix").status_code for _ in range(3)]
    assert statuses == [200, 200, 429]


def test_everybody_got_the_documentation_of_the_api_made_anew() -> None:
    first, second = (Client().get("/api/openapi.json") for _ in range(2))
    assert first.content == second.content
    assert api.get_openapi_schema() is api.get_openapi_schema()
