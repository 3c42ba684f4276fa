"""What an attacker, or haste, got of webhooks: secrets that ended early, one endpoint too many."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tailrace.net.signing import signer
from tailrace.subscriptions.channels.push import devices
from tailrace.subscriptions.channels.rss import feeds
from tailrace.subscriptions.channels.webhook.operations import endpoints
from tailrace.subscriptions.models import ApiToken, Device, Endpoint, Feed
from tailrace.web.accounts import tokens
from tests.kit import at_once
from tests.servers.browser import Browser
from tests.servers.web import serving
from tests.subscriptions.channels.webhook.kit import BOTH, owner
from tests.subscriptions.sample_domain import person, publish_event
from tests.web.program import Program, problem
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = 3600.0


def test_no_second_rotation_ends_the_first_secret_early(
    settings: Any, run_jobs: Callable, clock: Any
) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    with serving() as server:
        _ann, endpoint, secret = owner(server.url)
        secrets = [secret]
        for _ in range(3):
            clock.step(HOUR)
            secrets.append(endpoints.rotate(endpoint))

        def signed() -> list[bool]:
            publish_event()
            run_jobs(*BOTH)
            return [_signs(server.requests[-1], secret) for secret in secrets]

        assert signed() == [True, True, True, True]
        clock.step(21.5 * HOUR)
        assert signed() == [True, True, True, True]
        clock.step(HOUR)
        assert signed() == [False, True, True, True], "each ends at its own time"
        clock.step(HOUR)
        assert signed() == [False, False, True, True]
        clock.step(HOUR)
        assert signed() == [False, False, False, True]


def _signs(request: Any, secret: str) -> bool:
    sent = request.headers
    at = datetime.fromtimestamp(int(sent["webhook-timestamp"]), UTC)
    signature = signer(secret).sign(sent["webhook-id"], at, request.body.decode())
    return signature in sent["webhook-signature"].split()


def test_no_number_of_rotations_drops_a_secret_or_grows_the_header(clock: Any) -> None:
    _ann, endpoint, _secret = owner("https://example.org/hook")
    for _ in range(endpoints.MAX_OLD_SECRETS):
        endpoints.rotate(endpoint)
        clock.step(60)
    before = Endpoint.objects.values().get()
    with pytest.raises(
        endpoints.EndpointError, match="5 old secrets of this endpoint are still valid"
    ):
        endpoints.rotate(endpoint)
    assert Endpoint.objects.values().get() == before
    ann = Program(endpoint.user, "endpoints")
    result = problem(ann.post(f"/endpoints/{endpoint.pk}/rotate"), 409)
    assert "delete the endpoint" in result["detail"]
    page = Visitor(endpoint.user)
    assert page.post(f"/me/endpoints/{endpoint.pk}/rotate").status_code == 302
    assert "are still valid" in page.text(f"/me/endpoints/{endpoint.pk}")
    clock.step(24 * HOUR - 5 * 60)
    endpoints.rotate(endpoint)
    endpoint.refresh_from_db()
    assert len(endpoint.older_secrets) == endpoints.MAX_OLD_SECRETS - 1


def test_no_race_makes_51_endpoints_of_50() -> None:
    ann = person("ann")
    Endpoint.objects.bulk_create(
        Endpoint(user=ann, url="https://example.org/", secret="x") for _ in range(49)
    )
    made = at_once(8, lambda _: _tried(lambda: endpoints.create(ann, "https://example.org/1")))
    assert (made.count(True), Endpoint.objects.count()) == (1, endpoints.MAX_ENDPOINTS)


def test_no_race_makes_51_feeds_of_50() -> None:
    ann = person("ann")
    Feed.objects.bulk_create(Feed(user=ann, title="x", token_hash=str(n)) for n in range(49))
    made = at_once(8, lambda _: _tried(lambda: feeds.make_feed(ann)))
    assert (made.count(True), Feed.objects.count()) == (1, feeds.MAX_FEEDS)


def test_no_race_makes_101_tokens_of_100() -> None:
    ann = person("ann")
    ApiToken.objects.bulk_create(
        ApiToken(user=ann, name="x", scopes=[], token_hash=str(n)) for n in range(99)
    )
    made = at_once(8, lambda _: _tried(lambda: tokens.make(ann, "ci", ["feeds"])))
    assert (made.count(True), ApiToken.objects.count()) == (1, tokens.MAX_TOKENS)


def test_no_race_makes_21_browsers_of_20() -> None:
    ann = person("ann")
    Device.objects.bulk_create(
        Device(user=ann, url=f"https://push.example.org/{n}", p256dh="x", auth="x")
        for n in range(19)
    )
    browser = Browser()

    def add(number: int) -> Device:
        url = f"https://push.example.org/new{number}"
        return devices.add(ann, url, browser.p256dh, browser.auth)

    made = at_once(8, lambda number: _tried(lambda: add(number)))
    assert (made.count(True), Device.objects.count()) == (1, devices.MAX_DEVICES)


def _tried(make: Callable[[], Any]) -> bool:
    try:
        make()
    except ValueError:
        return False
    return True
