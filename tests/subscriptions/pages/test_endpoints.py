"""The pages of webhook endpoints."""

import html
import json
import re
from datetime import timedelta

import pytest
from django.utils import timezone

from tailrace.events.catalog.topics import family_of
from tailrace.jobs.destinations import breaker
from tailrace.subscriptions.channels.webhook.history import message_list, messages
from tailrace.subscriptions.channels.webhook.operations import endpoints, filters
from tailrace.subscriptions.models import Delivery, Endpoint
from tailrace.subscriptions.pages import endpoints as endpoints_page
from tests.servers.web import Response, serving
from tests.subscriptions.channels.webhook.kit import BOTH, TEST, verify
from tests.subscriptions.sample_domain import FIRST, Premiere, assign_role, person, publish_event
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
    assert "Paused. Deliveries wait until you resume the endpoint." in ann.text(where)
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
    assert "For 24 hours, deliveries are also signed with the old secret" in words(answer)
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


def test_messages_are_listed_with_their_tries_and_sent_again(ann: Visitor, run_jobs) -> None:
    assert ann.user is not None
    assign_role(FIRST, ann.user)
    with serving(lambda request: Response(302, b"<i>elsewhere</i>")) as server:
        endpoint, where = _own(ann, f"{server.url}/in")
        publish_event(payload={"title": "Faust"})
        run_jobs(*BOTH)
        (message,) = messages.describe(endpoint, list(messages.of_endpoint(endpoint)))
        page = ann.get(where)
        assert "failed stage.premiere · A play was shown for the first time: Faust" in words(page)
        assert "1 try, last: 302" in words(page)
        assert "&lt;i&gt;elsewhere&lt;/i&gt;" in page.content.decode()
        one = f"{where}/messages/{message.id}"
        body = html.unescape(ann.get(one).content.decode())
        assert '"subject": "Faust"' in body
        server.respond = lambda request: Response(200)
        assert ann.post(f"{one}/resend")["Location"] == where
        assert f"{message.message_id} will be sent again." in ann.text(where)
        run_jobs(*BOTH)
        assert "delivered stage.premiere" in ann.text(where)
        ann.post(f"{one}/resend")
        run_jobs(*BOTH)
    assert "3 tries, last: 200" in ann.text(where)
    assert [request.headers["webhook-id"] for request in server.requests] == [
        message.message_id
    ] * 3


def test_a_test_is_not_sent_again(ann: Visitor) -> None:
    endpoint, where = _own(ann)
    job = endpoints.send_test(endpoint)
    assert "waiting a test" in ann.text(where)
    ann.post(f"{where}/messages/{job}/resend")
    assert "A test cannot be sent again" in ann.text(where)


def test_messages_have_pages(ann: Visitor, monkeypatch) -> None:
    monkeypatch.setattr(endpoints_page, "PAGE", 2)
    endpoint, where = _own(ann)
    ids = [endpoints.send_test(endpoint) for _ in range(5)]
    result, path = [], where
    while path:
        text = ann.get(path).content.decode()
        result += re.findall(r"/messages/(\d+)\"", text)
        older = re.search(r'rel="next" href="([^"]+)"', text)
        path = older[1] if older else ""
    assert result == [str(id) for id in reversed(ids)]
    assert ann.get(where, after="x").status_code == 404
    assert "There are no older" in ann.text(f"{where}?after=1")


def test_messages_are_listed_by_what_became_of_them(ann: Visitor, run_jobs, monkeypatch) -> None:
    """Exactly as each row shows it: a test that failed, and a message that failed when it was sent
    again, are failed ones."""
    assert ann.user is not None
    assign_role(FIRST, ann.user)
    replies = iter([200, 302, 200, 302])
    with serving(lambda request: Response(next(replies))) as server:
        endpoint, where = _own(ann, f"{server.url}/in")
        for title in ("Faust", "Hamlet"):
            publish_event(payload={"title": title})
            run_jobs(*BOTH)
        endpoints.send_test(endpoint)
        run_jobs(TEST)
        oldest = list(messages.of_endpoint(endpoint))[-1:]
        messages.resend(endpoint, *messages.describe(endpoint, oldest), ann.user)
        run_jobs(*BOTH)
    endpoints.pause(endpoint)
    publish_event(payload={"title": "Macbeth"})
    run_jobs(*BOTH)

    def titles(name: str) -> list[str]:
        _, _, rows = ann.text(f"{where}?list={name}").partition("Delivered Failed")
        return re.findall("Faust|Hamlet|Macbeth|a test", rows)

    assert titles("failed") == ["Hamlet", "Faust"]
    assert titles("delivered") == ["a test"]
    assert titles("waiting") == ["Macbeth"]
    assert titles("") == ["Macbeth", "a test", "Hamlet", "Faust"]
    assert "Of the last 4 tries, 2 succeeded" in ann.text(where)
    assert ann.get(where, list="lost").status_code == 404
    monkeypatch.setattr(endpoints_page, "PAGE", 1)
    page = ann.get(where, list="failed").content.decode()
    (older,) = re.findall(r'rel="next" href="([^"]+\?list=failed&amp;after=\d+)"', page)
    assert "Faust" in ann.text(html.unescape(older))
    monkeypatch.setattr(message_list, "MAX_EXAMINED", 2)
    monkeypatch.setattr(message_list, "CHUNK", 1)
    page = ann.get(f"{where}?list=failed")
    assert "None among the newest 2 messages." in words(page)
    (older,) = re.findall(r'rel="next" href="([^"]+)"', page.content.decode())
    assert "Hamlet" in ann.text(html.unescape(older))


def test_a_message_behind_others_that_failed_says_so_without_jargon(ann: Visitor, run_jobs) -> None:
    assert ann.user is not None
    assign_role(FIRST, ann.user)
    with serving(lambda request: Response(503)) as server:
        endpoint, where = _own(ann, f"{server.url}/in")
        breaker.record_failure(endpoints.breaker_of(endpoint.pk), "it answered 503", at_once=True)
        publish_event(payload={"title": "Faust"})
        run_jobs(*BOTH)
    assert server.requests == []
    assert "the endpoint failed: one message is tried from time to time" in ann.text(where)
    assert "circuit breaker" not in ann.text(where)


def test_what_an_endpoint_gets_is_on_each_of_its_pages(ann: Visitor) -> None:
    endpoint, where = _own(ann)
    assert "Receives all events that you are subscribed to by the channel webhook." in ann.text(
        where
    )
    names = sorted({cls.name for cls in filters.sent_types()})[:7]
    endpoints.change(endpoint, event_types=names, subject_pattern="devel:*")
    for tab in ("", "/testing", "/recover", "/settings"):
        assert (
            f"Receives only {' , '.join(names[:5])} and 2 more, with subjects like devel:* ."
            in ann.text(f"{where}{tab}")
        )


def test_the_address_and_the_filter_are_changed(ann: Visitor) -> None:
    endpoint, where = _own(ann)
    names = [family_of(Premiere), "stage.gala"]
    values = {"url": URL, "event_types": "\n".join(names), "subject_pattern": "devel:*"}
    assert ann.post(f"{where}/settings", values)["Location"] == f"{where}/settings"
    endpoint.refresh_from_db()
    assert (endpoint.event_types, endpoint.subject_pattern) == (sorted(names), "devel:*")
    assert "stage.gala" in ann.text(f"{where}/settings")
    wrong = ann.post(f"{where}/settings", values | {"event_types": "stage.gal"})
    assert wrong.status_code == 422
    assert "did you mean &#x27;stage.gala&#x27;" in wrong.content.decode()
    assert ann.post(f"{where}/settings", values | {"url": "https://10.0.0.1/"}).status_code == 422


def test_a_sample_is_shown_and_sent(ann: Visitor, run_jobs) -> None:
    with serving() as server:
        _endpoint, where = _own(ann, f"{server.url}/in")
        page = ann.get(f"{where}/testing", type="stage.gala")
        assert '"type": "stage.gala"' in html.unescape(page.content.decode())
        for language in ("Python", "JavaScript", "Java", "Go", "Ruby", "PHP"):
            assert language in words(page)
        assert ann.get(f"{where}/testing", type="stage.silence").status_code == 404
        ann.post(f"{where}/test", {"type": "stage.gala"})
        run_jobs(TEST)
        assert "delivered stage.gala" in ann.text(where)
    assert json.loads(server.requests[0].body)["type"] == "stage.gala"


def test_a_recovery_is_started_and_listed(ann: Visitor, run_jobs) -> None:
    _endpoint, where = _own(ann)
    since = timezone.now() - timedelta(hours=2)
    values = {"what": "failed", "since": since.strftime("%Y-%m-%dT%H:%M")}
    assert ann.post(f"{where}/recover", values)["Location"] == f"{where}/recover"
    assert "another recovery" in words(ann.post(f"{where}/recover", values)).lower()
    assert POLLS in ann.get(f"{where}/recover").content.decode()
    run_jobs("subscriptions.webhook_recovery")
    assert "0 sent, 0 examined" in ann.text(f"{where}/recover")
    assert POLLS not in ann.get(f"{where}/recover").content.decode()
    early = ann.post(f"{where}/recover", values | {"since": "2020-01-01T00:00"})
    assert early.status_code == 422
    assert "within the last 30 days" in words(early)


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
    sent = endpoints.send_test(theirs)
    mine, my_where = _own(ann)
    assert "theirs" not in ann.text(HERE)
    pages = ("", "/delete", "/settings", "/testing", "/recover", f"/messages/{sent}")
    for what in pages:
        assert ann.get(where + what).status_code == 404, what
    assert ann.get(f"{my_where}/messages/{sent}").status_code == 404
    changes = ("test", "pause", "resume", "enable", "rotate", "delete", "settings", "recover")
    for what in (*changes, f"messages/{sent}/resend"):
        assert ann.post(f"{where}/{what}").status_code == 404, what
    assert ann.post(f"{my_where}/messages/{sent}/resend").status_code == 404
    assert _state(theirs) == "enabled"
    assert _state(mine) == "enabled"
    assert not theirs.old_secret
