"""Texts as the service gets them, and what its answers do."""

import base64
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from tailrace.db import clock as events_clock
from tailrace.jobs.engine.maintenance.ticking import rescue
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.runtime.states import State
from tailrace.subscriptions.channels.sms import gsm_alphabet
from tailrace.subscriptions.models import EventSubscription, Preferences
from tests.kit import at_once, claimed, verdicts_on
from tests.servers.sms import ACCOUNT, TOKEN, SmsService, error, sms_service
from tests.servers.web import Response, closed_port
from tests.subscriptions.sample_domain import (
    FIRST,
    Premiere,
    assign_role,
    person,
    publish_event,
    subscribe,
)

pytestmark = pytest.mark.django_db(transaction=True)
SMS = "subscriptions.sms"
BOTH = ("subscriptions.notify", SMS)
NUMBER = "+4930123456"


@pytest.fixture
def service(settings) -> Iterator[SmsService]:
    with sms_service() as running:
        settings.SMS_URL, settings.SMS_TOKEN = running.url, TOKEN
        settings.SMS_FROM = "+4930000000"
        yield running


def with_phone(login: str = "ann", number: str = NUMBER) -> User:
    user = person(login)
    Preferences.objects.create(user=user, phone=number, confirmed_phone=number)
    assign_role(FIRST, user)
    subscribe(channel="sms", user=user, state="on")
    return user


def job() -> Job:
    return Job.objects.get(handler=SMS)


def test_a_text_is_one_line_with_an_idempotency_key(run_jobs, service: SmsService) -> None:
    with_phone()
    publish_event(payload={"title": "Faust\nII"})
    run_jobs(*BOTH)
    (text,) = service.texts
    assert text["To"] == NUMBER
    assert text["From"] == "+4930000000"
    assert text["Body"] == "A play was shown for the first time: Faust II"
    assert text["key"].startswith(f"msg_{job().pk}_")
    assert job().state == State.COMPLETED
    assert job().result == {"status": 201, "sid": f"SM{1:032x}"}


def test_the_request_is_that_of_the_protocol_byte_for_byte(run_jobs, service: SmsService) -> None:
    with_phone()
    publish_event(payload={"title": "Faust & Söhne"})
    run_jobs(*BOTH)
    (request,) = service.requests
    account = base64.b64encode(f"{ACCOUNT}:{TOKEN}".encode()).decode()
    assert request.method == "POST"
    assert request.path == f"/2010-04-01/Accounts/{ACCOUNT}/Messages.json"
    assert request.body == (
        b"To=%2B4930123456&From=%2B4930000000"
        b"&Body=A+play+was+shown+for+the+first+time%3A+Faust+%26+S%C3%B6hne"
    )
    assert request.headers["authorization"] == f"Basic {account}"
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"
    assert request.headers["content-length"] == str(len(request.body))


def test_a_messaging_service_may_be_the_sender(run_jobs, service: SmsService, settings) -> None:
    settings.SMS_FROM = "MG0123456789"
    with_phone()
    publish_event()
    run_jobs(*BOTH)
    assert service.texts[0]["MessagingServiceSid"] == "MG0123456789"
    assert "From" not in service.texts[0]


def test_nobody_is_texted_who_did_not_choose_it_or_has_no_phone(
    run_jobs, service: SmsService
) -> None:
    ann, bob = person("ann"), person("bob")
    Preferences.objects.create(user=ann, phone=NUMBER, confirmed_phone=NUMBER)
    Preferences.objects.create(user=bob)
    assign_role(FIRST, ann, bob)
    subscribe(channel="sms", user=bob, state="on")
    publish_event()
    run_jobs(*BOTH)
    assert not Job.objects.filter(handler=SMS).exists()
    rows = EventSubscription.objects.filter(channel="sms", user=None, group=None)
    assert {row.state for row in rows} <= {"off"}


def test_the_link_comes_along_where_it_fits(
    run_jobs, service: SmsService, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = "https://tailrace.example.org/plays/1"
    monkeypatch.setattr(Premiere, "link", classmethod(lambda cls, event: link), raising=False)
    with_phone()
    publish_event(payload={"title": "x" * 300})
    run_jobs(*BOTH)
    body = service.texts[0]["Body"]
    assert body.endswith(f"xxx... {link}")
    assert gsm_alphabet.length(body) == 160


def test_a_bad_number_fails_and_its_digits_are_not_stored(run_jobs, service: SmsService) -> None:
    service.bad.add(NUMBER)
    with_phone()
    publish_event()
    run_jobs(*BOTH)
    assert (job().state, job().attempt) == (State.FAILED, 1)
    assert "is not a valid phone number. (21211)" in job().error
    assert NUMBER not in job().error


def test_who_opted_out_is_texted_no_more(run_jobs, service: SmsService) -> None:
    service.opted_out.add(NUMBER)
    ann = with_phone()
    publish_event()
    publish_event()
    run_jobs("subscriptions.notify")
    run_jobs(SMS)
    states = Job.objects.filter(handler=SMS).values_list("state", flat=True)
    assert set(states) <= {State.CANCELLED, State.SKIPPED}
    ann.preferences.refresh_from_db()
    assert ann.preferences.phone == ""
    before = len(service.requests)
    publish_event()
    run_jobs(*BOTH)
    assert len(service.requests) == before


def test_a_number_that_was_changed_meanwhile_is_not_taken_away(
    run_jobs, service: SmsService
) -> None:
    service.opted_out.add(NUMBER)
    ann = with_phone()
    publish_event()
    run_jobs("subscriptions.notify")
    service.before = lambda: at_once(  # in a thread that closes its connection
        1, lambda _: Preferences.objects.update(phone="+4930999999")
    )
    run_jobs(SMS)
    assert job().state == State.CANCELLED
    ann.preferences.refresh_from_db()
    assert ann.preferences.phone == "+4930999999"


@pytest.mark.parametrize(
    "answer",
    [
        error(429, 20429, "Too Many Requests", **{"Retry-After": "90"}),
        error(400, 20429, "Too Many Requests", **{"Retry-After": "90"}),
        Response(503, b"<html>busy</html>"),
        Response(500),
    ],
)
def test_429_and_5xx_are_tried_again_with_the_same_key(
    run_jobs, service: SmsService, clock, answer: Response
) -> None:
    with_phone()
    service.answer = answer
    publish_event()
    run_jobs(*BOTH)
    assert (job().state, job().attempt) == (State.PENDING, 1)
    if "Retry-After" in answer.headers:
        assert 30 < (job().due_at - events_clock.now()).total_seconds() <= 90
    service.answer = None
    clock.step(400)
    run_jobs(SMS)
    assert job().state == State.COMPLETED
    keys = {request.headers["idempotency-key"] for request in service.requests}
    assert len(keys) == 1


def test_a_token_that_is_wrong_costs_no_texts(
    run_jobs, service: SmsService, settings, clock
) -> None:
    settings.SMS_TOKEN = "wrong-t0ken-word"
    with_phone()
    events = [publish_event() for _ in range(10)]
    for _ in range(10):
        run_jobs(*BOTH)
        clock.step(4000)
    waiting = Job.objects.filter(handler=SMS, event__in=[event.id for event in events])
    assert {row.state for row in waiting} == {State.PENDING}
    errors = "".join(Attempt.objects.values_list("message", flat=True))
    assert "check SMS_URL and SMS_TOKEN" in errors
    assert "wrong-t0ken-word" not in errors
    settings.SMS_TOKEN = TOKEN
    for _ in range(4):
        clock.step(8000)
        run_jobs(SMS)
    assert len(service.texts) == 10


def test_a_service_that_is_away_costs_few_attempts(run_jobs, settings, clock) -> None:
    settings.SMS_URL = f"http://127.0.0.1:{closed_port()}/2010-04-01/Accounts/AC1/Messages.json"
    with_phone()
    for _ in range(10):
        publish_event()
    for _ in range(12):
        run_jobs(*BOTH)
        clock.step(1200)
    assert set(Job.objects.filter(handler=SMS).values_list("state", flat=True)) == {State.PENDING}


def test_after_a_crash_a_text_is_sent_with_the_same_key(
    run_jobs, service: SmsService, clock
) -> None:
    with_phone()
    publish_event()
    run_jobs("subscriptions.notify")
    list(verdicts_on(claimed(SMS)))  # and here the worker dies
    assert job().state == State.RUNNING
    clock.step(100)
    rescue.rescue()
    clock.step(10)
    run_jobs(SMS)
    assert job().state == State.COMPLETED
    first, second = service.texts
    assert first == second


def test_without_a_service_what_waits_is_cancelled(run_jobs, settings) -> None:
    with_phone()
    publish_event()
    run_jobs("subscriptions.notify")
    settings.SMS_URL = ""
    run_jobs(SMS)
    assert job().state == State.CANCELLED
    assert "SMS_URL" in job().error


# --- the alphabet ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("plain words", "plain words"),
        ("two\r\nlines\tand\u00a0blanks ", "two lines and blanks"),
        ("ÄÖÜäöüß é è à ñ Ç", "ÄÖÜäöüß é è à ñ Ç"),
        ("â ê î ő ç š ž ł Ł œ", "a e i o c s z l L oe"),
        ("„x“ – ‘y’ … 5€", "\"x\" - 'y' ... 5€"),
        ("日本 \U0001f600", "?? ?"),
        ("a\u200bb\u0301c\x07", "abc"),
        ("ﬁne ２０２６ ½", "fine 2026 12"),
    ],
)
def test_text_comes_down_to_the_alphabet(text: str, message: str) -> None:
    assert gsm_alphabet.plain(text) == message


def test_a_message_has_160_characters_some_count_twice() -> None:
    assert gsm_alphabet.length("{}€a") == 7
    for title in ("x" * 500, "€" * 500, "日" * 500, "{x}" * 100):
        message = gsm_alphabet.one_message(title)
        assert 157 <= gsm_alphabet.length(message) <= 160
        assert message.endswith("...")
    assert gsm_alphabet.one_message("x" * 160) == "x" * 160
    link = "https://example.org/" + "y" * 60
    assert gsm_alphabet.one_message("short", link) == f"short {link}"
    assert gsm_alphabet.one_message("x" * 200, "https://example.org/" + "y" * 80).endswith("...")
    assert gsm_alphabet.one_message("short", "https://example.org/" + "y" * 200) == "short"
    assert gsm_alphabet.one_message("short", "https://example.org/日") == "short"
