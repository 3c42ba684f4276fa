"""The pages of webhook endpoints."""

import re

import pytest

from subscriptions.channels.webhook import endpoints
from subscriptions.models import Delivery, Endpoint
from subscriptions.pages import endpoints as endpoints_page
from tests.servers.web import Response, serving
from tests.subscriptions.channels.webhook.kit import BOTH, TEST, verify
from tests.subscriptions.sample_domain import FIRST, assign_role, person, publish_event
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db(transaction=True)
HERE = "/me/endpoints"
URL = "https://example.org/hook"
POLLS = 'hx-trigger="every 2s"'


@pytest.fixture(autouse=True)
def _local(settings) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]


@pytest.fixture
def ann() -> Visitor:
    return Visitor(person("ann"))


def _own(visitor: Visitor, url: str = URL) -> tuple[Endpoint, str]:
    assert visitor.user is not None
    endpoint, _secret = endpoints.create(visitor.user, url)
    return endpoint, f"{HERE}/{endpoint.pk}"


def _state(endpoint: Endpoint) -> str:
    endpoint.refresh_from_db()
    return endpoint.state


def _secret(text: str) -> str:
    result = re.search(r'id="secret"[^>]* value="(whsec_[^"]+)"', text)
    assert result
    return result[1]


def test_an_endpoint_is_added_and_its_secret_shown_once(ann: Visitor, run_jobs) -> None:
    with serving() as server:
        answer = ann.post(HERE, {"url": f"{server.url}/in", "description": "mine"})
        assert answer.status_code == 200, words(answer)
        assert "no-store" in answer["Cache-Control"]
        secret = _secret(answer.content.decode())
        page = ann.get(HERE)
        assert secret not in page.content.decode()
        assert "mine" in words(page)
        endpoint = Endpoint.objects.get(user=ann.user)
        where = f"{HERE}/{endpoint.pk}"
        assert ann.post(f"{where}/test")["Location"] == where
        assert POLLS in ann.get(where).content.decode()
        run_jobs(TEST)
        page = ann.get(where).content.decode()
        assert POLLS not in page
        assert "a test" in page
        verify(server.requests[0], secret)
    assert secret not in str(list(Endpoint.objects.values()))


@pytest.mark.parametrize(
    ("url", "page_text"),
    [
        ("", "This field is required."),
        ("ftp://example.org/", "ftp"),
        ("https://10.0.0.1/", "10.0.0.1"),
        ("https://user:pass@example.org/", "a user name before its host"),
        ("https://example.org/" + "x" * 2000, "at most 2000 characters"),
    ],
)
def test_a_wrong_address_is_refused_with_the_reason(ann: Visitor, url: str, page_text: str) -> None:
    answer = ann.post(HERE, {"url": url})
    assert answer.status_code == 422
    assert page_text in words(answer)
    assert not Endpoint.objects.exists()


def test_the_number_is_limited(ann: Visitor, monkeypatch) -> None:
    monkeypatch.setattr(endpoints, "MAX_ENDPOINTS", 1)
    _own(ann)
    answer = ann.post(HERE, {"url": URL})
    assert answer.status_code == 422
    assert "the maximum" in words(answer)


def test_it_is_paused_resumed_and_enabled(ann: Visitor) -> None:
    endpoint, where = _own(ann)
    assert ann.post(f"{where}/pause")["Location"] == where
    assert "Paused. Deliveries wait until you resume it." in ann.text(where)
    assert _state(endpoint) == "paused"
    ann.post(f"{where}/resume")
    assert _state(endpoint) == "enabled"
    ann.post(f"{where}/resume")
    assert re.search(r"Endpoint \d+ is enabled, not paused", ann.text(where))
    endpoints.disable(endpoint, "it answered 410")
    assert "it answered 410" in ann.text(where)
    ann.post(f"{where}/pause")
    assert _state(endpoint) == "disabled"
    ann.post(f"{where}/enable")
    assert _state(endpoint) == "enabled"


def test_a_new_secret_is_shown_once(ann: Visitor) -> None:
    endpoint, where = _own(ann)
    answer = ann.post(f"{where}/rotate")
    assert "Deliveries are also signed with each old one for 24 hours" in words(answer)
    assert "no-store" in answer["Cache-Control"]
    secret = _secret(answer.content.decode())
    assert secret not in ann.get(where).content.decode()
    endpoint.refresh_from_db()
    assert endpoint.old_secret


def test_a_test_that_fails_says_why(ann: Visitor, run_jobs) -> None:
    with serving(lambda request: Response(500, b"<b>no</b>")) as server:
        endpoint, where = _own(ann, f"{server.url}/in")
        ann.post(f"{where}/test")
        assert "A test is being sent." in ann.text(where)
        run_jobs(TEST)
        page = ann.get(where)
        assert "answered 500" in words(page)
        assert "&lt;b&gt;no&lt;/b&gt;" in page.content.decode()
        for _again in range(8):
            ann.post(f"{where}/test")
        assert "Too many tests of this endpoint" in ann.text(where)
    assert Delivery.objects.filter(endpoint=endpoint).count() <= 6


def test_a_failed_delivery_is_sent_again(ann: Visitor, run_jobs) -> None:
    assert ann.user is not None
    assign_role(FIRST, ann.user)
    with serving(lambda request: Response(302)) as server:
        endpoint, where = _own(ann, f"{server.url}/in")
        publish_event()
        run_jobs(*BOTH)
        failed = Delivery.objects.get(endpoint=endpoint)
        assert "302" in ann.text(where)
        server.respond = lambda request: Response(200)
        assert ann.post(f"{where}/deliveries/{failed.pk}/replay")["Location"] == where
        assert f"{failed.message_id} will be sent again." in ann.text(where)
        run_jobs(*BOTH)
    assert Delivery.objects.filter(endpoint=endpoint, outcome="ok").count() == 1
    ann.post(f"{where}/deliveries/{failed.pk}/replay")
    assert "is not sent again" in ann.text(where)


def test_a_test_is_not_sent_again(ann: Visitor) -> None:
    endpoint, where = _own(ann)
    tried = Delivery.objects.create(
        endpoint=endpoint, message_id="msg_test_1", attempt=1, milliseconds=1, outcome="failed"
    )
    assert "Send again" not in ann.text(where)
    ann.post(f"{where}/deliveries/{tried.pk}/replay")
    assert "A test delivery has no job" in ann.text(where)


def test_deliveries_have_pages(ann: Visitor, monkeypatch) -> None:
    monkeypatch.setattr(endpoints_page, "PAGE", 2)
    endpoint, where = _own(ann)
    for number in range(5):
        Delivery.objects.create(
            endpoint=endpoint, message_id=f"msg_{number}", attempt=1, milliseconds=1, outcome="ok"
        )
    result, path = [], where
    while path:
        text = ann.get(path).content.decode()
        result += re.findall(r"<code>(msg_\d)</code>", text)
        older = re.search(r'rel="next" href="(\?[^"]+)"', text)
        path = where + older[1] if older else ""
    assert result == [f"msg_{number}" for number in (4, 3, 2, 1, 0)]
    assert ann.get(where, before="x").status_code == 404
    assert "There are no older" in ann.text(f"{where}?before=1")


def test_deleting_asks_first(ann: Visitor) -> None:
    _endpoint, where = _own(ann)
    assert "Delete this webhook?" in ann.text(f"{where}/delete")
    assert Endpoint.objects.exists()
    assert ann.post(f"{where}/delete")["Location"] == HERE
    assert f"Nothing will be sent to {URL}." in ann.text(HERE)
    assert not Endpoint.objects.exists()


def test_rows_of_other_users_are_not_found(ann: Visitor) -> None:
    bob = Visitor(person("bob"))
    theirs, where = _own(bob, "https://example.org/theirs")
    tried = Delivery.objects.create(
        endpoint=theirs, message_id="m", attempt=1, milliseconds=1, outcome="failed", job_id=1
    )
    mine, my_where = _own(ann)
    assert "theirs" not in ann.text(HERE)
    assert ann.get(where).status_code == 404
    assert ann.get(f"{where}/delete").status_code == 404
    for what in ("test", "pause", "resume", "enable", "rotate", "delete"):
        assert ann.post(f"{where}/{what}").status_code == 404, what
    for path in (
        f"{where}/deliveries/{tried.pk}/replay",
        f"{my_where}/deliveries/{tried.pk}/replay",
    ):
        assert ann.post(path).status_code == 404
    assert _state(theirs) == "enabled"
    assert _state(mine) == "enabled"
    assert not theirs.old_secret
