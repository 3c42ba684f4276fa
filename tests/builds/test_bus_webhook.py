import json
import time

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from domains.builds.bus import Bus, Delivery, Fate, Misconfigured, UnknownBus, kind, redacted
from domains.builds.bus.webhook import WebhookBus, retry_after
from tests.builds.bus_kit import SECRET, messages
from tests.servers.web import Answer, Asked, closed_port, serving, silent_port


@pytest.fixture(autouse=True)
def secret(settings) -> None:
    settings.BUS_WEBHOOK_SECRET = SECRET


def fates(deliveries: list[Delivery]) -> list[Fate]:
    return [delivery.fate for delivery in deliveries]


def test_a_receiver_can_verify_what_it_gets() -> None:
    with serving() as server:
        assert fates(WebhookBus("hook", f"{server.url}/in").send(messages(1))) == [Fate.SENT]
    (asked,) = server.asked
    assert Webhook(SECRET).verify(asked.body, asked.headers) == {"rev": "1"}
    assert (asked.method, asked.path) == ("POST", "/in")
    assert asked.headers["webhook-id"] == "1"
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["x-routing-key"] == "opensuse.obs.package.commit.n1"
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(asked.body + b" ", asked.headers)


def test_a_bus_may_have_a_secret_of_its_own(settings) -> None:
    settings.BUS_SECRETS = {"MY_HOOK": "whsec_" + "QUJD" * 8}
    with serving() as server:
        WebhookBus("my-hook", server.url).send(messages(1))
    assert Webhook("QUJD" * 8).verify(server.asked[0].body, server.asked[0].headers)


@pytest.mark.parametrize("value", ["", "whsec_", "C2FVsBQIhrscChlQIMV", "whsec_not base64!"])
def test_a_missing_or_wrong_secret_is_named_and_not_shown(settings, value: str) -> None:
    settings.BUS_WEBHOOK_SECRET = value
    with pytest.raises(Misconfigured, match="BUS_WEBHOOK_SECRET or BUS_SECRET_HOOK") as caught:
        WebhookBus("hook", "https://example.org/")
    assert not value or value.removeprefix("whsec_") not in str(caught.value) or value == "whsec_"


@pytest.mark.parametrize(
    ("status", "fate"),
    [
        (200, Fate.SENT),
        (204, Fate.SENT),
        (301, Fate.REFUSED),
        (307, Fate.REFUSED),
        (400, Fate.REFUSED),
        (401, Fate.REFUSED),
        (404, Fate.REFUSED),
        (410, Fate.REFUSED),
        (408, Fate.FAILED),
        (429, Fate.FAILED),
        (500, Fate.FAILED),
        (503, Fate.FAILED),
    ],
)
def test_the_status_says_what_is_next(status: int, fate: Fate) -> None:
    elsewhere = {"Location": "/elsewhere"} if 300 <= status < 400 else {}
    with serving(lambda asked: Answer(status, headers=elsewhere)) as server:
        (delivery,) = WebhookBus("hook", server.url).send(messages(1))
    assert delivery.fate is fate
    assert len(server.asked) == 1, "redirects are not followed"
    assert fate is Fate.SENT or str(status) in delivery.reason


def test_retry_after_is_honoured_within_bounds() -> None:
    assert retry_after("120") == 120
    assert retry_after("0") == 1
    assert retry_after("999999") == 3600
    assert retry_after("Wed, 21 Oct 2099 07:28:00 GMT") == 3600
    assert retry_after("Wed, 21 Oct 1999 07:28:00 GMT") == 1
    assert [retry_after(value) for value in ("", "soon", "nan")] == [None, None, None]


def test_an_overloaded_receiver_is_left_alone_with_the_rest_of_the_batch() -> None:
    busy = Answer(429, headers={"Retry-After": "77"})
    with serving(lambda asked: busy) as server:
        deliveries = WebhookBus("hook", server.url).send(messages(50))
    assert {delivery.after for delivery in deliveries if delivery.fate is Fate.FAILED} == {77}
    assert fates(deliveries).count(Fate.UNTRIED) >= 42
    assert len(server.asked) <= 8


def test_a_dead_receiver_holds_up_no_more_than_the_first_few() -> None:
    port = closed_port()
    deliveries = WebhookBus("hook", f"http://127.0.0.1:{port}/").send(messages(50))
    assert set(fates(deliveries)) == {Fate.DOWN, Fate.UNTRIED}
    assert fates(deliveries).count(Fate.UNTRIED) >= 42


def test_a_receiver_that_hangs_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("domains.builds.bus.webhook.TOTAL_SECONDS", 0.5)
    began = time.monotonic()
    with silent_port() as port:
        deliveries = WebhookBus("hook", f"http://127.0.0.1:{port}/").send(messages(50))
    assert time.monotonic() - began < 5
    assert fates(deliveries).count(Fate.DOWN) <= 8
    assert "no answer in 0.5 s" in deliveries[0].reason


def test_a_receiver_that_drips_its_answer_is_given_up_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("domains.builds.bus.webhook.TOTAL_SECONDS", 1.0)

    def drip(asked: Asked) -> Answer:
        time.sleep(2)
        return Answer()

    with serving(drip) as server:
        (delivery,) = WebhookBus("hook", server.url).send(messages(1))
    assert delivery.fate is Fate.DOWN


def test_a_long_answer_is_not_read_to_its_end() -> None:
    with serving(lambda asked: Answer(200, b"x" * 5_000_000)) as server:
        assert fates(WebhookBus("hook", server.url).send(messages(2))) == [Fate.SENT] * 2


def test_an_answer_that_is_cut_is_tried_again() -> None:
    with serving(lambda asked: Answer(200, b"x" * 1000, cut=10)) as server:
        (delivery,) = WebhookBus("hook", server.url).send(messages(1))
    assert delivery.fate is Fate.DOWN


def test_proxy_variables_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{closed_port()}")
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{closed_port()}")
    with serving() as server:
        assert fates(WebhookBus("hook", server.url).send(messages(1))) == [Fate.SENT]


def test_plain_http_stays_on_this_machine_unless_allowed() -> None:
    with pytest.raises(Misconfigured, match="unencrypted"):
        WebhookBus("hook", "http://hooks.example.org/in")
    assert WebhookBus("hook", "http://hooks.example.org/in#plain").secret
    assert WebhookBus("hook", "http://localhost:9/in").secret


def test_secrets_of_a_url_are_not_shown() -> None:
    url = "https://bot:hunter22@hooks.example.org/in?token=t0ken-word"
    assert redacted(url) == "https://bot:***@hooks.example.org/in?token=***"
    said = Bus("hook", url).why(ValueError("GET https://bot:hunter22@x/?token=t0ken-word failed"))
    assert "hunter22" not in said
    assert "t0ken-word" not in said


def test_a_scheme_that_nobody_speaks_names_those_there_are() -> None:
    with pytest.raises(UnknownBus, match=r"gopher:// \(known: amqp://, amqps://, file://, http"):
        kind("gopher://example.org/")


def test_messages_of_a_batch_share_connections() -> None:
    with serving() as server:
        deliveries = WebhookBus("hook", server.url).send(messages(40))
    assert set(fates(deliveries)) == {Fate.SENT}
    assert sorted(json.loads(asked.body)["rev"] for asked in server.asked) == sorted(
        str(n) for n in range(1, 41)
    )
