"""What users got of third parties: texts to strangers, floods to a host, URLs of others."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from tailrace.jobs.models import Job
from tailrace.subscriptions.channels.sms import confirmation, limits
from tailrace.subscriptions.channels.webhook.hosts import wait_for
from tailrace.subscriptions.channels.webhook.operations import endpoints
from tailrace.subscriptions.models import Endpoint, PhoneCode, Preferences
from tests.servers.sms import TOKEN, SmsService, sms_service
from tests.servers.web import ReceivedRequest, Response, serving
from tests.subscriptions.sample_domain import FIRST, assign_role, person, publish_event, subscribe
from tests.web.program import Program, problem
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db(transaction=True)
NUMBER = "+4930123456"
SMS = ("subscriptions.notify", "subscriptions.sms", "subscriptions.phone_code")
WEBHOOK = (
    "subscriptions.notify",
    "subscriptions.webhook",
    "subscriptions.webhook_confirm",
)


@pytest.fixture
def service(settings: Any) -> Iterator[SmsService]:
    with sms_service() as running:
        settings.SMS_URL, settings.SMS_TOKEN = running.url, TOKEN
        settings.SMS_FROM = "+4930000000"
        yield running


def with_phone(login: str = "ann") -> User:
    user = person(login)
    Preferences.objects.create(user=user, phone=NUMBER)
    subscribe(channel="sms", user=user, state="on")
    return user


def code_in(service: SmsService) -> str:
    match = re.match(r"\d{6}", service.texts[-1]["Body"])
    assert match
    return match[0]


def another(code: str) -> str:
    return f"{(int(code) + 1) % 10**6:06}"


def test_no_text_goes_to_a_number_that_nobody_confirmed(
    run_jobs: Callable, service: SmsService
) -> None:
    ann = with_phone()
    assign_role(FIRST, ann)
    publish_event()
    run_jobs(*SMS)
    assert service.texts == []
    api = Program(ann, "subscriptions:write")
    assert api.post("/preferences/phone/code").status_code == 202
    run_jobs(*SMS)
    assert [text["To"] for text in service.texts] == [NUMBER]
    confirmed = api.post("/preferences/phone/confirm", {"code": code_in(service)})
    assert confirmed.json()["phone_confirmed"] is True
    publish_event()
    run_jobs(*SMS)
    assert len(service.texts) == 2
    api.patch("/preferences", {"phone": "+4930999999"})
    publish_event()
    run_jobs(*SMS)
    assert len(service.texts) == 2, "another number is another stranger's"


def test_the_code_is_in_no_table_and_no_page(run_jobs: Callable, service: SmsService) -> None:
    ann = with_phone()
    visitor = Visitor(ann)
    assert "Confirm your phone" in visitor.text("/me/preferences")
    visitor.post("/me/preferences/phone/code")
    run_jobs(*SMS)
    code = code_in(service)
    stored = [*Job.objects.values(), *PhoneCode.objects.values()]
    assert code not in str(stored) + visitor.text("/me/preferences")
    visitor.post("/me/preferences/phone/confirm", {"code": code})
    assert "Confirm your phone" not in visitor.text("/me/preferences")
    assert Preferences.objects.get().phone_confirmed


def test_no_code_is_guessed(run_jobs: Callable, service: SmsService, clock: Any) -> None:
    ann = with_phone()
    confirmation.send_code(ann)
    run_jobs(*SMS)
    code = code_in(service)
    for tries in range(confirmation.MAX_TRIES):
        with pytest.raises(confirmation.PhoneError, match=f"{4 - tries} tries are left"):
            confirmation.confirm(ann, another(code))
        with pytest.raises(confirmation.PhoneError, match=r"wait \d+ s|no longer valid"):
            confirmation.confirm(ann, code)
        clock.step(2 * 2**tries + 0.5)
    with pytest.raises(confirmation.PhoneError, match="no longer valid"):
        confirmation.confirm(ann, code)
    assert not Preferences.objects.get().phone_confirmed


def test_an_old_code_and_that_of_another_number_confirm_nothing(
    run_jobs: Callable, service: SmsService, clock: Any
) -> None:
    ann = with_phone()
    confirmation.send_code(ann)
    run_jobs(*SMS)
    code = code_in(service)
    Preferences.objects.update(phone="+4930999999")
    with pytest.raises(confirmation.PhoneError, match="no code was sent to this number"):
        confirmation.confirm(ann, code)
    Preferences.objects.update(phone=NUMBER)
    clock.step(601)
    with pytest.raises(confirmation.PhoneError, match="no longer valid"):
        confirmation.confirm(ann, code)


def test_nobody_floods_a_number_with_codes(
    run_jobs: Callable, service: SmsService, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CODES_PER_DAY", 3)
    ann, bob = with_phone("ann"), with_phone("bob")
    clock.stop()
    confirmation.send_code(ann)
    with pytest.raises(confirmation.PhoneError, match="another one in 60 s"):
        confirmation.send_code(ann)
    clock.step(61)
    confirmation.send_code(ann)
    clock.step(61)
    with pytest.raises(confirmation.PhoneError, match="another one in 59 s"):
        confirmation.send_code(ann)
    confirmation.send_code(bob)
    clock.step(3600)
    for user in (ann, bob):
        with pytest.raises(confirmation.PhoneError, match="3 codes were sent today"):
            confirmation.send_code(user)
    api = Program(bob, "subscriptions:write")
    assert "tomorrow" in problem(api.post("/preferences/phone/code"), 409)["detail"]
    run_jobs(*SMS)
    assert len(service.texts) <= 3
    clock.step(86_400)
    confirmation.send_code(bob)


def test_no_number_gets_more_texts_a_day_than_the_setting(
    run_jobs: Callable, service: SmsService, settings: Any, clock: Any
) -> None:
    settings.SMS_PER_DAY = 3
    users = [with_phone("ann"), with_phone("bob")]
    Preferences.objects.update(confirmed_phone=NUMBER)
    assign_role(FIRST, *users)
    for _ in range(4):
        publish_event()
    run_jobs(*SMS)
    assert len(service.texts) == 3
    assert Job.objects.filter(handler="subscriptions.sms", state="skipped").count() == 5
    clock.step(86_401)
    publish_event()
    run_jobs(*SMS)
    assert len(service.texts) == 5


def test_many_users_do_not_flood_one_host(run_jobs: Callable, settings: Any) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    settings.WEBHOOK_HOST_PER_SECOND = 0.001  # one now, the next long after the test
    with serving() as server:
        users = [person(f"user{number}") for number in range(12)]
        for user in users:
            endpoints.create(user, f"{server.url}/{user.pk}")
        assign_role(FIRST, *users)
        publish_event()
        run_jobs(*WEBHOOK)
        assert len(server.requests) == 1
        held = Job.objects.filter(handler="subscriptions.webhook", state="pending")
        assert held.count() == 11
        assert "host:127.0.0.1 gets at most 0.001 messages per second" in held[0].error
        for endpoint in Endpoint.objects.all():
            endpoints.send_test(endpoint)
        run_jobs("subscriptions.webhook_test")
        assert len(server.requests) == 1, "tests are no way around it"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("https://a.example.org/x", "https://b.example.org/y"),
        ("https://example.org/", "https://deep.below.EXAMPLE.org.:8443/"),
        ("https://a.bücher.co.uk/", "https://b.xn--bcher-kva.co.uk/"),
        ("https://[2606:4700::1]/", "https://[2606:4700:0:0::1]/"),
    ],
)
def test_hosts_of_one_domain_do_not_get_a_limit_each(
    settings: Any, first: str, second: str
) -> None:
    settings.WEBHOOK_HOST_PER_SECOND = 0.001
    assert wait_for(first) == 0
    assert wait_for(second) > 100
    assert wait_for("https://example.co.uk/") == 0, "another owner"


@pytest.fixture
def confirming(settings: Any) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    settings.WEBHOOK_CONFIRM = True


@pytest.mark.parametrize(
    "answer",
    [
        lambda sent: b"",
        lambda sent: b"ok",
        lambda sent: json.dumps(sent).encode(),
        lambda sent: json.dumps({"challenge": "x"}).encode(),
        lambda sent: json.dumps({"challenge": "\ud800"}).encode(),
        lambda sent: json.dumps({**sent["data"], "more": 1}).encode(),
        lambda sent: b"[" * 10_000,
    ],
    ids=["nothing", "ok", "echo", "another", "surrogate", "more", "nested"],
)
def test_no_url_gets_events_that_did_not_answer_the_challenge(
    confirming: None, run_jobs: Callable, answer: Callable[[Any], bytes]
) -> None:
    def respond(request: ReceivedRequest) -> Response:
        return Response(200, answer(json.loads(request.body)))

    with serving(respond) as server:
        ann = person("ann")
        endpoint, _secret = endpoints.create(ann, server.url)
        assign_role(FIRST, ann)
        run_jobs(*WEBHOOK)
        publish_event()
        run_jobs(*WEBHOOK)
        assert len(server.requests) == 1, "the challenge alone"
        assert Job.objects.get(handler="subscriptions.webhook_confirm").state == "failed"
        with pytest.raises(endpoints.EndpointError, match="is not confirmed"):
            endpoints.send_test(endpoint)
        api = Program(ann, "endpoints")
        assert api.get(f"/endpoints/{endpoint.pk}").json()["confirmed"] is False
        page = Visitor(ann)
        assert "until this address has replied" in page.text(f"/me/endpoints/{endpoint.pk}")
    assert not Endpoint.objects.get().confirmed


def test_a_url_that_answers_gets_events_until_it_is_changed(
    confirming: None, run_jobs: Callable
) -> None:
    def respond(request: ReceivedRequest) -> Response:
        data = json.loads(request.body)["data"]
        return Response(200, json.dumps({"challenge": data.get("challenge")}).encode())

    with serving(respond) as server:
        ann = person("ann")
        endpoint, _secret = endpoints.create(ann, server.url)
        assign_role(FIRST, ann)
        run_jobs(*WEBHOOK)
        publish_event()
        run_jobs(*WEBHOOK)
        assert len(server.requests) == 2
        endpoint.refresh_from_db()
        endpoints.change(endpoint, url=f"{server.url}/other")
        publish_event()
        run_jobs(*WEBHOOK)
        assert len(server.requests) == 2
        api = Program(ann, "endpoints")
        assert api.post(f"/endpoints/{endpoint.pk}/confirm").status_code == 200
        run_jobs(*WEBHOOK)
        publish_event()
        run_jobs(*WEBHOOK)
        assert len(server.requests) == 4


def test_a_delivery_that_waited_is_not_sent_to_a_url_that_was_changed(
    confirming: None, run_jobs: Callable
) -> None:
    with serving() as server:
        ann = person("ann")
        endpoints.create(ann, server.url)
        Endpoint.objects.update(confirmed_url=server.url)
        assign_role(FIRST, ann)
        publish_event()
        run_jobs("subscriptions.notify")
        Endpoint.objects.update(url=f"{server.url}/victim")
        run_jobs("subscriptions.webhook")
        assert server.requests == []
    assert Job.objects.get(handler="subscriptions.webhook").state == "cancelled"
