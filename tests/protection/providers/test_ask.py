"""Asking a provider: its budget, its breaker, pauses for all workers, and answers that are none."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from tailrace.domains.protection.services.providers import ask as ask_module
from tailrace.domains.protection.services.providers.admission import admission
from tailrace.domains.protection.services.providers.ask import Answer, Provider, ask
from tailrace.jobs.destinations import rate_limit
from tailrace.jobs.destinations.request_errors import RateLimited, RequestRefused, Unavailable
from tailrace.jobs.models import Breaker
from tailrace.net import http_client
from tests.kit import at_once
from tests.servers.web import ReceivedRequest, Response, closed_port, serving, silent_port

pytestmark = pytest.mark.django_db(transaction=True)


def provider(url: str, per_second: float = 1000) -> Provider:
    return Provider("test", url, per_second, {"x-key": "word"}, max_bytes=4_000_000)


@async_to_sync
async def ask_one(provider: Provider, path: str = "/a", **options: Any) -> Answer:
    return await ask(provider, path, **options)


@async_to_sync
async def ask_many(provider: Provider, count: int, **options: Any) -> list[Any]:
    calls = [ask(provider, f"/{number}", **options) for number in range(count)]
    return await asyncio.gather(*calls, return_exceptions=True)


def is_list(answer: Answer) -> str:
    return "" if isinstance(answer.json(), list) else "answered no list"


def test_an_answer_comes_with_its_headers() -> None:
    with serving(lambda request: Response(200, b"[1]", {"ETag": "x"})) as server:
        params = [("q", "a b"), ("limit", "1")]
        answer = ask_one(provider(server.url), params=params, headers={"X-Mine": "1"})
        assert (answer.status, answer.json(), answer.headers["etag"]) == (200, [1], "x")
        [request] = server.requests
        assert (request.method, request.path) == ("GET", "/a?q=a+b&limit=1")
        assert (request.headers["x-key"], request.headers["x-mine"]) == ("word", "1")
        assert not Breaker.objects.exists(), "what works writes nothing"


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (Response(500), "answered 500"),
        (Response(200, b"<html>busy</html>"), "is not JSON"),
        (Response(200, b'[{"Name": "Ado'), "is not JSON"),
        (Response(200, b"[" * 100_000), "is not JSON"),
        (Response(200, b'{"statusCode": 500, "message": "oops"}'), "answered no list"),
        (Response(200, b" " * 5_000_000), "answered with more than 4,000,000 bytes"),
        (Response(200, b"[1, 2, 3]", cut=4), "without sending complete"),
    ],
)
def test_nonsense_is_an_error_of_the_provider(response: Response, reason: str) -> None:
    with serving(lambda request: response) as server, pytest.raises(Unavailable, match=reason):
        ask_one(provider(server.url), is_wrong=is_list)
    assert Breaker.objects.get(name="protection:test").failures == 1


@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_refusal_is_not_tried_again(status: int) -> None:
    with serving(lambda request: Response(status)) as server:
        with pytest.raises(RequestRefused, match=f"test: answered {status}") as error:
            ask_one(provider(server.url))
        assert error.value.status == status
    assert not Breaker.objects.exists()


def test_one_that_is_not_there_is_left_alone_for_a_while(clock) -> None:
    away = provider(f"http://127.0.0.1:{closed_port()}")
    with pytest.raises(Unavailable) as error:
        ask_one(away)
    assert error.value.was_asked
    with pytest.raises(Unavailable, match="circuit breaker is open") as error:
        ask_one(away)
    assert not error.value.was_asked
    clock.step(6)
    with serving(lambda request: Response(200, b"[]")) as server:
        answers = ask_many(provider(server.url), 5)
        assert len(server.requests) == 1, "one tries whether it is back"
        assert sum(isinstance(answer, Answer) for answer in answers) == 1
        assert all(isinstance(answer, Answer) for answer in ask_many(provider(server.url), 5))


def test_one_that_does_not_answer_holds_nobody_for_long(monkeypatch) -> None:
    monkeypatch.setattr(http_client, "TOTAL_SECONDS", 0.2)
    with silent_port() as port, pytest.raises(Unavailable, match=r"no answer in 0\.2 s"):
        ask_one(provider(f"http://127.0.0.1:{port}"))


def test_errors_in_a_row_open_the_breaker() -> None:
    with serving(lambda request: Response(503)) as server:
        for _ in range(5):
            with pytest.raises(Unavailable, match="answered 503"):
                ask_one(provider(server.url))
        with pytest.raises(Unavailable, match="breaker is open"):
            ask_one(provider(server.url))
        assert len(server.requests) == 5


def test_the_budget_holds_for_all_and_nobody_is_passed_over() -> None:
    times: list[float] = []
    with serving(noting(times)) as server:
        answers = ask_many(provider(server.url, 40), 20)
        paths = [request.path for request in server.requests]
    assert all(isinstance(answer, Answer) for answer in answers)
    assert times[-1] - times[0] > 17 / 40, "20 at 40 a second, 2 of them at once"
    # A busy process drops late tokens. Their callers come first when the next ones are reserved.
    numbers = [int(path.removeprefix("/")) for path in paths]
    assert all(abs(number - place) <= 12 for place, number in enumerate(numbers)), numbers


def test_the_budget_is_that_of_all_workers() -> None:
    """Threads with event loops and connections of their own share it as processes do."""
    times: list[float] = []
    with serving(noting(times)) as server:
        at_once(4, lambda _number: ask_many(provider(server.url, 40), 5))
    assert len(times) == 20
    # 17/40 s, but for the time that the first one takes to arrive where the machine is busy.
    assert max(times) - min(times) > 10 / 40


def test_places_that_a_blocked_process_has_missed_are_not_used_at_once() -> None:
    """They would be so many more than the provider allows in that second."""
    times: list[float] = []

    async def wait_for_place(provider: Provider) -> None:
        await admission(provider, time.monotonic() + 30)
        times.append(time.monotonic())
        if len(times) == 1:
            time.sleep(0.5)  # the loop is blocked

    @async_to_sync
    async def wait_for_places() -> None:
        slow = provider("http://localhost", 20)
        await asyncio.gather(*[wait_for_place(slow) for _ in range(8)])

    wait_for_places()
    after = [at for at in times if at < times[0] + 0.55]
    assert len(after) <= 4, "the first, one of four, one of the bucket, and one in its time"


def noting(times: list[float]) -> Callable[[ReceivedRequest], Response]:
    lock = threading.Lock()

    def respond(request: ReceivedRequest) -> Response:
        with lock:
            times.append(time.monotonic())
        return Response(200, b"[]")

    return respond


def test_a_used_up_budget_is_no_error() -> None:
    with serving(lambda request: Response(200, b"[]")) as server:
        slow = provider(server.url, 0.01)
        assert ask_one(slow).status == 200
        with pytest.raises(RateLimited) as error:
            ask_one(slow, patience=0.1)
        assert 95 < error.value.after < 110
        assert len(server.requests) == 1
    assert not Breaker.objects.exists()


def test_a_429_pauses_all_workers_for_as_long_as_it_says() -> None:
    times: list[float] = []
    note = noting(times)

    def respond(request: ReceivedRequest) -> Response:
        note(request)
        return Response(429, headers={"retry-after": "2"}) if len(times) == 1 else Response(200)

    with serving(respond) as server:
        answers = at_once(3, lambda number: _later(number, provider(server.url)))
    assert [answer.status for answer in answers] == [200, 200, 200]
    assert len(times) == 4, "the one that was refused asks again itself"
    assert times[1] - times[0] >= 2.0
    assert not Breaker.objects.filter(open_until__isnull=False).exists()


def _later(number: int, provider: Provider) -> Answer:
    """The others begin when the first has its answer."""
    if number:
        time.sleep(0.3)
    return ask_one(provider)


def test_a_pause_that_is_too_long_is_not_waited_for(clock) -> None:
    with serving(lambda request: Response(429, headers={"retry-after": "100"})) as server:
        with pytest.raises(RateLimited) as error:
            ask_one(provider(server.url))
        assert 99 < error.value.after < 101
        with pytest.raises(RateLimited):
            ask_one(provider(server.url))
        assert len(server.requests) == 1
        server.respond = lambda request: Response(200, b"[]")
        clock.step(102)
        assert ask_one(provider(server.url)).status == 200


def test_a_429_that_names_no_wait_pauses_too(monkeypatch) -> None:
    monkeypatch.setattr(ask_module, "PAUSE_SECONDS", 50.0)
    with serving(lambda request: Response(429)) as server, pytest.raises(RateLimited) as error:
        ask_one(provider(server.url))
    assert 49 < error.value.after < 51


def test_a_probe_that_waits_for_the_budget_is_not_lost(clock) -> None:
    with pytest.raises(Unavailable):
        ask_one(provider(f"http://127.0.0.1:{closed_port()}"))
    clock.step(6)
    with serving(lambda request: Response(200, b"[]")) as server:
        slow = provider(server.url, 4)
        rate_limit.take_token(slow.budget, 4, 1)
        rate_limit.pause(slow.budget, 4, 0.3)
        assert ask_one(slow).status == 200
    assert Breaker.objects.get().open_until is None
