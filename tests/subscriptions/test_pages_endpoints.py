"""My webhook endpoints, as pages."""

import re

import pytest

from subscriptions import endpoints
from subscriptions.models import Delivery, Endpoint
from subscriptions.pages import my_endpoints
from tests.servers.web import Answer, serving
from tests.subscriptions.browsing import Visitor, words
from tests.subscriptions.hooks import BOTH, verify
from tests.subscriptions.stage import FIRST, happen, hold, person

pytestmark = pytest.mark.django_db(transaction=True)
HERE = "/me/endpoints"
URL = "https://example.org/hook"


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
    found = re.search(r'id="secret"[^>]* value="(whsec_[^"]+)"', text)
    assert found
    return found[1]


def test_an_endpoint_is_added_and_its_secret_shown_once(ann: Visitor) -> None:
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
        assert "The test arrived: it answered 200." in ann.told(where)
        verify(server.asked[0], secret)
    assert secret not in str(list(Endpoint.objects.values()))


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("", "This field is required."),
        ("ftp://example.org/", "ftp"),
        ("https://10.0.0.1/", "10.0.0.1"),
        ("https://user:pass@example.org/", "a user before its host"),
        ("https://example.org/" + "x" * 2000, "at most 2000 characters"),
    ],
)
def test_a_wrong_address_is_refused_with_the_reason(ann: Visitor, url: str, told: str) -> None:
    answer = ann.post(HERE, {"url": url})
    assert answer.status_code == 422
    assert told in words(answer)
    assert not Endpoint.objects.exists()


def test_there_is_a_most(ann: Visitor, monkeypatch) -> None:
    monkeypatch.setattr(endpoints, "MOST", 1)
    _own(ann)
    answer = ann.post(HERE, {"url": URL})
    assert answer.status_code == 422
    assert "which is the most" in words(answer)


def test_it_is_paused_resumed_and_enabled(ann: Visitor) -> None:
    endpoint, where = _own(ann)
    assert ann.post(f"{where}/pause")["Location"] == where
    assert "Paused: its deliveries are held." in ann.told(where)
    assert _state(endpoint) == "paused"
    ann.post(f"{where}/resume")
    assert _state(endpoint) == "enabled"
    ann.post(f"{where}/resume")
    assert re.search(r"Endpoint \d+ is enabled, not paused", ann.told(where))
    endpoints.disable(endpoint, "it answered 410")
    assert "it answered 410" in ann.told(where)
    ann.post(f"{where}/pause")
    assert _state(endpoint) == "disabled"
    ann.post(f"{where}/enable")
    assert _state(endpoint) == "enabled"


def test_a_new_secret_is_shown_once(ann: Visitor) -> None:
    endpoint, where = _own(ann)
    answer = ann.post(f"{where}/rotate")
    assert "The old one signs too for 24 hours" in words(answer)
    assert "no-store" in answer["Cache-Control"]
    secret = _secret(answer.content.decode())
    assert secret not in ann.get(where).content.decode()
    endpoint.refresh_from_db()
    assert endpoint.old_secret


def test_a_test_that_fails_says_why(ann: Visitor) -> None:
    with serving(lambda asked: Answer(500, b"<b>no</b>")) as server:
        endpoint, where = _own(ann, f"{server.url}/in")
        ann.post(f"{where}/test")
        page = ann.get(where)
        assert "The test failed: answered 500." in words(page)
        assert "&lt;b&gt;no&lt;/b&gt;" in page.content.decode()
        for _again in range(8):
            ann.post(f"{where}/test")
        assert "Too many tests of this endpoint" in ann.told(where)
    assert Delivery.objects.filter(endpoint=endpoint).count() <= 6


def test_a_failed_delivery_is_sent_again(ann: Visitor, run_jobs) -> None:
    assert ann.user is not None
    hold(FIRST, ann.user)
    with serving(lambda asked: Answer(302)) as server:
        endpoint, where = _own(ann, f"{server.url}/in")
        happen()
        run_jobs(*BOTH)
        failed = Delivery.objects.get(endpoint=endpoint)
        assert "302" in ann.told(where)
        server.respond = lambda asked: Answer(200)
        assert ann.post(f"{where}/deliveries/{failed.pk}/replay")["Location"] == where
        assert f"{failed.message_id} is sent again." in ann.told(where)
        run_jobs(*BOTH)
    assert Delivery.objects.filter(endpoint=endpoint, outcome="ok").count() == 1
    ann.post(f"{where}/deliveries/{failed.pk}/replay")
    assert "is not sent again" in ann.told(where)


def test_a_test_is_not_sent_again(ann: Visitor) -> None:
    endpoint, where = _own(ann)
    tried = Delivery.objects.create(
        endpoint=endpoint, message_id="msg_test_1", attempt=1, milliseconds=1, outcome="failed"
    )
    assert "Send again" not in ann.told(where)
    ann.post(f"{where}/deliveries/{tried.pk}/replay")
    assert "A test delivery has no job" in ann.told(where)


def test_deliveries_go_on_page_by_page(ann: Visitor, monkeypatch) -> None:
    monkeypatch.setattr(my_endpoints, "PAGE", 2)
    endpoint, where = _own(ann)
    for number in range(5):
        Delivery.objects.create(
            endpoint=endpoint, message_id=f"msg_{number}", attempt=1, milliseconds=1, outcome="ok"
        )
    found, path = [], where
    while path:
        text = ann.get(path).content.decode()
        found += re.findall(r"<code>(msg_\d)</code>", text)
        older = re.search(r'rel="next" href="(\?[^"]+)"', text)
        path = where + older[1] if older else ""
    assert found == [f"msg_{number}" for number in (4, 3, 2, 1, 0)]
    assert ann.get(where, before="x").status_code == 404
    assert "There is nothing older" in ann.told(f"{where}?before=1")


def test_deleting_asks_first(ann: Visitor) -> None:
    _endpoint, where = _own(ann)
    assert "Delete this webhook?" in ann.told(f"{where}/delete")
    assert Endpoint.objects.exists()
    assert ann.post(f"{where}/delete")["Location"] == HERE
    assert f"nothing is sent to {URL} any more" in ann.told(HERE)
    assert not Endpoint.objects.exists()


def test_those_of_others_are_out_of_reach(ann: Visitor) -> None:
    bob = Visitor(person("bob"))
    theirs, where = _own(bob, "https://example.org/theirs")
    tried = Delivery.objects.create(
        endpoint=theirs, message_id="m", attempt=1, milliseconds=1, outcome="failed", job_id=1
    )
    mine, my_where = _own(ann)
    assert "theirs" not in ann.told(HERE)
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
