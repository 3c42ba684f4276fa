"""Requests that cost far more than they look: what an attacker got is in the tests' names."""

import socket
import time

import pytest

from tailrace.subscriptions.channels.webhook.operations import endpoints
from tests.kit import at_once
from tests.net.test_http_client import post
from tests.servers.raw import conversing, read_request
from tests.servers.web import silent_port
from tests.subscriptions.sample_domain import FIRST, person
from tests.web.program import Program, problem, program
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db(transaction=True)


def test_eight_tests_of_a_silent_endpoint_got_all_threads_of_the_web(settings) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    ann = program("ann")
    visitor = Visitor(person("bob"))
    with silent_port() as port:
        url = f"http://127.0.0.1:{port}/"
        of_ann, _ = endpoints.create(ann.user, url)
        assert visitor.user is not None
        of_bob, _ = endpoints.create(visitor.user, url)
        started = time.monotonic()
        for _ in range(4):
            assert ann.post(f"/endpoints/{of_ann.pk}/test").status_code == 202
            assert visitor.post(f"/me/endpoints/{of_bob.pk}/test").status_code == 302
        assert time.monotonic() - started < 60  # 120 s when each waited for its answer


def test_a_hundred_tokens_got_a_hundred_budgets(settings) -> None:
    settings.USER_RATE, settings.USER_BURST = 0.01, 10
    ann = program("ann")
    programs = [Program(ann.user, "feeds") for _ in range(20)]
    statuses = [each.get("/feeds").status_code for each in programs]
    assert statuses == [200] * 10 + [429] * 10
    answer = programs[0].get("/feeds")
    assert "0.01 requests per second" in problem(answer, 429, "rate-limited")["detail"]
    assert 0 < int(answer["Retry-After"]) <= 100
    page = Visitor(ann.user).get("/me/feeds")
    assert (page.status_code, int(page["Retry-After"]) > 0) == (429, True)
    assert "Too many requests" in words(page)
    assert program("bob").get("/feeds").status_code == 200


def test_pages_got_what_the_api_refused(settings) -> None:
    settings.USER_RATE, settings.USER_BURST = 0.01, 3
    ann = program("ann")
    visitor = Visitor(ann.user)
    pages = [visitor.get("/me/feeds").status_code for _ in range(5)]
    assert pages == [200, 200, 200, 429, 429]
    problem(ann.get("/feeds"), 429, "rate-limited")


def test_a_costly_request_got_counted_as_one(settings, clock) -> None:
    settings.USER_RATE, settings.USER_BURST = 1.0, 25
    ann = program("ann")
    wanted = {"event_type": "*", "role": FIRST, "channel": "web"}
    clock.stop()
    assert ann.post("/subscriptions/preview", wanted).status_code == 200
    answer = ann.post("/subscriptions/preview", wanted)
    assert "this one counts as 20" in problem(answer, 429, "rate-limited")["detail"]
    assert answer["Retry-After"] == "15"
    assert ann.get("/feeds").status_code == 200
    clock.step(17)
    assert ann.post("/subscriptions/preview", wanted).status_code == 200


def test_many_requests_at_once_got_more_than_the_budget(settings) -> None:
    settings.USER_RATE, settings.USER_BURST = 0.001, 5
    user = person("ann")
    programs = [Program(user, "feeds") for _ in range(10)]
    statuses = at_once(10, lambda number: programs[number].get("/feeds").status_code)
    assert sorted(statuses) == [200] * 5 + [429] * 5


EMPTY_OBJECTS = b"[" + b"{}," * 340_000 + b"{}]"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (EMPTY_OBJECTS, 413),
        (b"[" + b"1," * 500_000 + b"1]", 413),
        (b'{"specversion": "1.0", "data": ' + b'{"a":' * 150_000 + b"1" + b"}" * 150_001, 413),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, 400),
        (b"[" * 5000, 400),
        (b'{"a": "' + b'\\",' * 300_000 + b'"}', 422),  # one long text
        (b'"' * 1_000_000, 400),
        (b"\\" * 1_000_000, 400),
    ],
    ids=["objects", "numbers", "deep", "nested", "open", "text", "quotes", "backslashes"],
)
def test_a_megabyte_of_brackets_got_a_second_before_the_first_check(
    body: bytes, status: int
) -> None:
    ann = program("ann", may=("tailrace_events.add_event",))
    started = time.thread_time()
    answer = ann.post("/events", body, content_type="application/cloudevents-batch+json")
    assert time.thread_time() - started < 1
    assert answer.status_code == status, answer.content
    assert len(answer.content) < 100_000


def test_a_body_of_unknown_fields_got_an_error_for_each() -> None:
    body = b"{" + b",".join(b'"x%d": 1' % number for number in range(15_000)) + b"}"
    answer = program("ann").post("/feeds", body)
    assert len(problem(answer, 422, "invalid")["errors"]) == 100


def test_endless_interim_answers_got_a_worker_for_15_seconds(settings) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    sent = 0

    def hints(peer: socket.socket) -> None:
        nonlocal sent
        read_request(peer)
        while True:
            sent += peer.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 100)

    with conversing(hints) as port:
        started = time.thread_time()
        reply = post(f"http://127.0.0.1:{port}/")
        assert time.thread_time() - started < 2
    assert reply.error == "sent more than 32 KiB"
    assert sent < 20_000_000, "what the sockets' buffers hold"
