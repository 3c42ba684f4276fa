import json
import threading

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from tailrace.domains.builds.destinations.base import Bus, Misconfigured, UnknownBus
from tailrace.domains.builds.destinations.connections import bus_class
from tailrace.domains.builds.destinations.webhook import WebhookBus
from tailrace.jobs.destinations.delivery import DeliveryResult, DeliveryStatus
from tailrace.net.http_client import retry_after
from tests.builds.destinations.kit import SECRET, delivered, messages
from tests.kit import PATIENCE
from tests.servers.web import (
    ReceivedRequest,
    Response,
    closed_port,
    serving,
    silent_port,
)


@pytest.fixture(autouse=True)
def secret(settings) -> None:
    settings.BUS_WEBHOOK_SECRET = SECRET


def fates(deliveries: list[DeliveryResult]) -> list[DeliveryStatus]:
    return [delivery.status for delivery in deliveries]


def test_a_receiver_can_verify_what_it_gets() -> None:
    with serving() as server:
        assert fates(delivered(WebhookBus("hook", f"{server.url}/in"), messages(1))) == [
            DeliveryStatus.SENT
        ]
    (request,) = server.requests
    assert Webhook(SECRET).verify(request.body, request.headers) == {"rev": "1"}
    assert (request.method, request.path) == ("POST", "/in")
    assert request.headers["webhook-id"] == "1"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["x-routing-key"] == "opensuse.obs.package.commit.n1"
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(request.body + b" ", request.headers)


def test_a_bus_may_have_a_secret_of_its_own(settings) -> None:
    settings.BUS_SECRETS = {"MY_HOOK": "whsec_" + "QUJD" * 8}
    with serving() as server:
        delivered(WebhookBus("my-hook", server.url), messages(1))
    assert Webhook("QUJD" * 8).verify(server.requests[0].body, server.requests[0].headers)


@pytest.mark.parametrize("value", ["", "whsec_", "C2FVsBQIhrscChlQIMV", "whsec_not base64!"])
def test_a_missing_or_wrong_secret_is_named_and_not_shown(settings, value: str) -> None:
    settings.BUS_WEBHOOK_SECRET = value
    with pytest.raises(Misconfigured, match="BUS_WEBHOOK_SECRET or BUS_SECRET_HOOK") as caught:
        WebhookBus("hook", "https://example.org/")
    assert not value or value.removeprefix("whsec_") not in str(caught.value) or value == "whsec_"


@pytest.mark.parametrize(
    ("status", "fate"),
    [
        (200, DeliveryStatus.SENT),
        (204, DeliveryStatus.SENT),
        (301, DeliveryStatus.REJECTED),
        (307, DeliveryStatus.REJECTED),
        (400, DeliveryStatus.REJECTED),
        (401, DeliveryStatus.REJECTED),
        (404, DeliveryStatus.REJECTED),
        (410, DeliveryStatus.REJECTED),
        (408, DeliveryStatus.FAILED),
        (429, DeliveryStatus.FAILED),
        (500, DeliveryStatus.FAILED),
        (503, DeliveryStatus.FAILED),
    ],
)
def test_the_status_decides_what_comes_next(status: int, fate: DeliveryStatus) -> None:
    elsewhere = {"Location": "/elsewhere"} if 300 <= status < 400 else {}
    with serving(lambda request: Response(status, headers=elsewhere)) as server:
        (delivery,) = delivered(WebhookBus("hook", server.url), messages(1))
    assert delivery.status is fate
    assert len(server.requests) == 1, "redirects are not followed"
    assert fate is DeliveryStatus.SENT or str(status) in delivery.reason


def test_retry_after_is_honoured_within_bounds() -> None:
    assert retry_after("120") == 120
    assert retry_after("0") == 1
    assert retry_after("999999") == 3600
    assert retry_after("Wed, 21 Oct 2099 07:28:00 GMT") == 3600
    assert retry_after("Wed, 21 Oct 1999 07:28:00 GMT") == 1
    assert [retry_after(value) for value in ("", "soon", "nan")] == [None, None, None]


def test_an_overloaded_receiver_gets_no_more_of_the_batch() -> None:
    busy = Response(429, headers={"Retry-After": "77"})
    with serving(lambda request: busy) as server:
        deliveries = delivered(WebhookBus("hook", server.url), messages(50))
    assert {
        delivery.after for delivery in deliveries if delivery.status is DeliveryStatus.FAILED
    } == {77}
    assert fates(deliveries).count(DeliveryStatus.NOT_TRIED) >= 42
    assert len(server.requests) <= 8


def test_a_dead_receiver_delays_only_the_first_few() -> None:
    port = closed_port()
    deliveries = delivered(WebhookBus("hook", f"http://127.0.0.1:{port}/"), messages(50))
    assert set(fates(deliveries)) == {DeliveryStatus.UNAVAILABLE, DeliveryStatus.NOT_TRIED}
    assert fates(deliveries).count(DeliveryStatus.NOT_TRIED) >= 42


def test_a_receiver_that_hangs_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailrace.domains.builds.destinations.http_bus.TOTAL_SECONDS", 0.5)
    with silent_port() as port:
        deliveries = delivered(WebhookBus("hook", f"http://127.0.0.1:{port}/"), messages(50))
    assert fates(deliveries).count(DeliveryStatus.UNAVAILABLE) <= 8
    assert "no answer in 0.5 s" in deliveries[0].reason


def test_a_receiver_that_answers_too_slowly_times_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tailrace.domains.builds.destinations.http_bus.TOTAL_SECONDS", 1.0)

    given_up = threading.Event()

    def answer_too_late(request: ReceivedRequest) -> Response:
        given_up.wait(PATIENCE)
        return Response()

    with serving(answer_too_late) as server:
        (delivery,) = delivered(WebhookBus("hook", server.url), messages(1))
        given_up.set()
    assert delivery.status is DeliveryStatus.UNAVAILABLE


def test_a_long_answer_is_not_read_to_its_end() -> None:
    with serving(lambda request: Response(200, b"x" * 5_000_000)) as server:
        assert (
            fates(delivered(WebhookBus("hook", server.url), messages(2)))
            == [DeliveryStatus.SENT] * 2
        )


def test_an_answer_that_is_cut_is_tried_again() -> None:
    with serving(lambda request: Response(200, b"x" * 1000, cut=10)) as server:
        (delivery,) = delivered(WebhookBus("hook", server.url), messages(1))
    assert delivery.status is DeliveryStatus.UNAVAILABLE


def test_proxy_variables_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{closed_port()}")
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{closed_port()}")
    with serving() as server:
        assert fates(delivered(WebhookBus("hook", server.url), messages(1))) == [
            DeliveryStatus.SENT
        ]


def test_plain_http_stays_on_this_machine_unless_allowed() -> None:
    with pytest.raises(Misconfigured, match="not encrypted"):
        WebhookBus("hook", "http://hooks.example.org/in")
    assert WebhookBus("hook", "http://hooks.example.org/in#plain").signer
    assert WebhookBus("hook", "http://localhost:9/in").signer


def test_secrets_of_a_url_are_not_shown() -> None:
    url = "https://bot:hunter22@hooks.example.org/in?token=t0ken-word"
    text = Bus("hook", url).describe(
        ValueError("GET https://bot:hunter22@x/?token=t0ken-word failed")
    )
    assert text.startswith("https://***@hooks.example.org/in?token=***: ")
    assert "hunter22" not in text
    assert "t0ken-word" not in text


def test_an_unknown_scheme_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownBus, match=r"gopher:// \(known: amqp://, amqps://, file://, http"):
        bus_class("gopher://example.org/")


def test_messages_of_a_batch_share_connections() -> None:
    with serving() as server:
        deliveries = delivered(WebhookBus("hook", server.url), messages(40))
    assert set(fates(deliveries)) == {DeliveryStatus.SENT}
    assert sorted(json.loads(request.body)["rev"] for request in server.requests) == sorted(
        str(n) for n in range(1, 41)
    )
