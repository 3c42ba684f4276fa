"""Push messages as a browser reads them, and what a push service's answers do."""

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.checks import run_checks

from tailrace.db import clock as events_clock
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.runtime.states import State
from tailrace.net import http_client
from tailrace.subscriptions.channels.push import devices, vapid
from tailrace.subscriptions.channels.push.devices import DeviceError
from tailrace.subscriptions.models import Device
from tests import forks
from tests.kit import claimed, verdicts_on
from tests.servers.browser import Browser, claims_of
from tests.servers.raw import hanging
from tests.servers.web import Response, closed_port, serving
from tests.subscriptions.sample_domain import FIRST, Gala, assign_role, person, publish_event

pytestmark = pytest.mark.django_db(transaction=True)
PUSH = "subscriptions.push"
BOTH = ("subscriptions.notify", PUSH)
URL = "https://push.example.org/send/abc"


@pytest.fixture(autouse=True)
def _local(settings) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]


def with_browser(url: str, login: str = "ann") -> tuple[User, Browser, Device]:
    user, browser = person(login), Browser()
    assign_role(FIRST, user)
    return user, browser, devices.add(user, url, browser.p256dh, browser.auth, "Firefox")


def job() -> Job:
    return Job.objects.get(handler=PUSH)


def test_a_browser_decrypts_a_push_signed_with_vapid(run_jobs) -> None:
    with serving(lambda request: Response(201)) as server:
        _ann, browser, _device = with_browser(f"{server.url}/send/abc")
        event = publish_event(payload={"title": "Faust é"})
        run_jobs(*BOTH)
    (request,) = server.requests
    message = browser.read(request)
    assert message["title"] == "A play was shown for the first time: Faust é"
    assert (message["type"], message["event"], message["tag"]) == (
        "stage.premiere",
        event.id,
        request.headers["topic"],
    )
    assert b"Faust" not in request.body
    assert request.headers["ttl"] == "86400"
    assert request.headers["urgency"] == "normal"
    claims = claims_of(request)
    assert claims["aud"] == server.url
    assert claims["sub"] == "mailto:tests@example.org"
    assert claims["key"] == vapid.public_key()
    now = events_clock.now().timestamp()
    assert now + 3600 < claims["exp"] <= now + 86_400
    assert job().state == State.COMPLETED


def test_events_of_one_thread_have_one_topic(run_jobs) -> None:
    with serving(lambda request: Response(201)) as server:
        with_browser(server.url)
        for kind, title in ((Gala, "Faust"), (Gala, "Faust"), (Gala, "Hamlet")):
            publish_event(kind, payload={"title": title})
        run_jobs(*BOTH)
    topics = [request.headers["topic"] for request in server.requests]
    assert len(topics) == 3
    assert len(set(topics)) == 2
    assert all(len(topic) <= 32 for topic in topics)


def test_one_job_per_browser_and_another_cannot_read_it(
    run_jobs, django_assert_num_queries
) -> None:
    from cryptography.exceptions import InvalidTag
    from http_ece import ECEException

    from tailrace.subscriptions.channels.push.channel import Push
    from tailrace.subscriptions.notifications.audience.resolve import audiences

    with serving(lambda request: Response(201)) as server:
        ann, browser, device = with_browser(f"{server.url}/1")
        other = Browser()
        second = devices.add(ann, f"{server.url}/2", other.p256dh, other.auth)
        event = publish_event()
        run_jobs(*BOTH)
    keys = Job.objects.filter(handler=PUSH).values_list("routing_key", "lane")
    assert set(keys) == {
        (f"user:{ann.pk}:device:{each.pk}", server.url) for each in (device, second)
    }
    assert len(keys) == 2
    by_path = {request.path: request for request in server.requests}
    assert other.read(by_path["/2"]) == browser.read(by_path["/1"])
    with pytest.raises((ECEException, InvalidTag)):
        other.read(by_path["/1"])
    recipients = [recipient for recipient in audiences([event]) if recipient.channel == "push"]
    with django_assert_num_queries(1):
        assert len(list(Push.deliveries(recipients))) == 2


@pytest.mark.parametrize("status", [404, 410])
def test_a_browser_that_unsubscribed_itself_is_gone(run_jobs, status: int) -> None:
    with serving(lambda request: Response(status)) as server:
        _ann, _browser, device = with_browser(server.url)
        publish_event()
        run_jobs(*BOTH)
        publish_event()
        run_jobs(*BOTH)
    assert len(server.requests) == 1
    device.refresh_from_db()
    assert device.gone_at is not None
    assert job().state == State.CANCELLED
    assert "the browser's subscription ended" in job().error


@pytest.mark.parametrize("status", [400, 401, 403, 413])
def test_what_a_service_refuses_fails_for_good(run_jobs, status: int) -> None:
    with serving(lambda request: Response(status)) as server:
        with_browser(server.url)
        publish_event()
        run_jobs(*BOTH)
    assert job().state == State.FAILED
    assert f"answered {status}" in job().error


@pytest.mark.parametrize("answer", [Response(429, headers={"Retry-After": "120"}), Response(503)])
def test_429_and_5xx_are_tried_again_as_asked(run_jobs, clock, answer: Response) -> None:
    response = answer
    with serving(lambda request: response) as server:
        _ann, browser, _device = with_browser(server.url)
        publish_event()
        run_jobs(*BOTH)
        assert (job().state, job().attempt) == (State.PENDING, 1)
        late = (job().due_at - events_clock.now()).total_seconds()
        assert 60 < late <= 120 if response.headers else late < 40
        response = Response(201)
        clock.step(400)
        run_jobs(PUSH)
    assert job().state == State.COMPLETED
    first, second = server.requests
    assert browser.read(first) == browser.read(second)
    assert first.body != second.body, "a key of its own for each message"
    assert first.headers["topic"] == second.headers["topic"]


def test_a_service_that_hangs_does_not_delay_another(
    run_jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "TOTAL_SECONDS", 3.0)
    arrived: list[int] = []
    with (
        hanging(lambda: arrived.append(len(server.requests))) as port,
        serving(lambda request: Response(201)) as server,
    ):
        ann, browser, _device = with_browser(f"http://127.0.0.1:{port}/1")
        devices.add(ann, f"{server.url}/2", browser.p256dh, browser.auth)
        for _ in range(10):
            publish_event()
        run_jobs(*BOTH)
    assert len(server.requests) == 10
    assert arrived[0] > 0, "others were served while it hung"


def test_a_push_service_on_a_private_address_is_refused(run_jobs, settings) -> None:
    with serving() as server:
        with_browser(server.url)
        settings.WEBHOOK_ALLOWED_NETWORKS = []
        settings.WEBHOOK_ALLOW_HTTP = True
        publish_event()
        run_jobs(*BOTH)
    assert server.requests == []
    assert job().state == State.FAILED
    assert "not a public address" in job().error


def test_a_message_is_cut_to_what_services_take(run_jobs) -> None:
    with serving(lambda request: Response(201)) as server:
        _ann, browser, _device = with_browser(server.url)
        publish_event(payload={"title": "\U0001f600" * 490, "note": '"\\' * 3000})
        run_jobs(*BOTH)
    assert browser.read(server.requests[0])["title"].startswith("A play was shown")


def test_after_a_kill_the_same_topic_is_pushed_again(run_jobs, clock) -> None:
    from tailrace.jobs.engine.maintenance.ticking import rescue

    with serving(lambda request: Response(201)) as server:
        _ann, browser, _device = with_browser(server.url)
        publish_event()
        run_jobs("subscriptions.notify")
        list(verdicts_on(claimed(PUSH)))  # and here the worker dies
        assert job().state == State.RUNNING
        clock.step(100)
        rescue.rescue()
        clock.step(10)
        run_jobs(PUSH)
    assert job().state == State.COMPLETED
    first, second = server.requests
    assert browser.read(first) == browser.read(second)


def test_errors_show_neither_key_nor_browser_address(run_jobs, settings, capfd) -> None:
    with_browser(f"http://127.0.0.1:{closed_port()}/send/s3cret-word")
    publish_event()
    run_jobs(*BOTH)
    written = capfd.readouterr()
    shown = written.out + written.err + job().error
    shown += "".join(Attempt.objects.values_list("message", flat=True))
    assert "Connect call failed" in shown
    assert "s3cret-word" not in shown
    assert settings.VAPID_PRIVATE_KEY not in shown


# --- devices --------------------------------------------------------------------------------------


def test_a_browser_is_added_once_and_can_return() -> None:
    ann, browser, device = with_browser(URL)
    devices.mark_gone(device.pk)
    again = devices.add(ann, URL, browser.p256dh, browser.auth, "Firefox at home")
    assert again.pk == device.pk
    assert (again.gone_at, again.name) == (None, "Firefox at home")
    devices.remove(again)
    assert not Device.objects.exists()


def test_a_browser_changes_its_user_only_with_the_same_keys() -> None:
    _ann, browser, device = with_browser(URL)
    bob, stranger = person("bob"), Browser()
    with pytest.raises(DeviceError, match="another user"):
        devices.add(bob, URL, stranger.p256dh, stranger.auth)
    assert devices.add(bob, URL, browser.p256dh, browser.auth).pk == device.pk
    device.refresh_from_db()
    assert device.user == bob


def test_jobs_of_a_browser_that_changed_user_are_cancelled(run_jobs) -> None:
    with serving(lambda request: Response(201)) as server:
        _ann, browser, _device = with_browser(server.url)
        publish_event()
        run_jobs("subscriptions.notify")
        devices.add(person("bob"), server.url, browser.p256dh, browser.auth)
        run_jobs(PUSH)
    assert server.requests == []
    assert job().state == State.CANCELLED


@pytest.mark.parametrize(
    ("url", "p256dh", "auth", "words"),
    [
        ("https://10.0.0.1/", "", "", "not a public address"),
        ("http://push.example.org/", "", "", "use https://"),
        (URL, "AAAA", "", "p256dh is not the key"),
        (URL, "not base64!", "", "p256dh is not the key"),
        (URL, "B" + "A" * 86, "", "p256dh is not the key"),
        (URL, "", "AAAA", "auth is not the secret"),
        (URL, "", "é", "auth is not the secret"),
    ],
)
def test_a_device_that_cannot_be_pushed_to_is_refused(
    url: str, p256dh: str, auth: str, words: str
) -> None:
    browser = Browser()
    with pytest.raises(DeviceError, match=words):
        devices.add(person("ann"), url, p256dh or browser.p256dh, auth or browser.auth)


def test_nobody_has_browsers_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "MAX_DEVICES", 1)
    ann, browser, _device = with_browser(URL)
    with pytest.raises(DeviceError, match="remove one first"):
        devices.add(ann, URL + "2", browser.p256dh, browser.auth)


# --- keys -----------------------------------------------------------------------------------------


def test_make_vapid_keys_prints_a_pair_that_is_taken(settings, capsys) -> None:
    from tailrace.events.management.subcommands import call_subcommand

    call_subcommand("make_vapid_keys")
    lines = capsys.readouterr().out.splitlines()
    settings.VAPID_PRIVATE_KEY = lines[0].removeprefix("VAPID_PRIVATE_KEY=")
    assert lines[1].endswith(vapid.public_key())
    assert vapid.authorization("https://push.example.org").endswith(f"k={vapid.public_key()}")


def test_without_keys_push_reaches_nobody() -> None:
    output = forks.run(
        ["-c", "import django; django.setup();"
         "from tailrace.subscriptions.types.channel import all_channels;"
         "from tailrace.subscriptions.channels.push import vapid;"
         "channels = all_channels();"
         "print(channels['push'].reaches_user, channels['sms'].reaches_user,"
         " vapid.public_key() or 0)"],
        cwd=Path(__file__).parents[3], capture_output=True, text=True, timeout=300, check=True,
        env={"DJANGO_SETTINGS_MODULE": "tailrace.config.settings", "PATH": ""},
    )  # fmt: skip
    assert output.stdout.split() == ["false", "false", "0"]


def test_push_that_was_switched_off_cancels_what_waits(run_jobs, settings) -> None:
    with_browser(URL)
    publish_event()
    run_jobs("subscriptions.notify")
    settings.VAPID_PRIVATE_KEY = ""
    run_jobs(PUSH)
    assert job().state == State.CANCELLED
    assert "VAPID_PRIVATE_KEY" in job().error


@pytest.mark.parametrize(
    ("subject", "problems"),
    [
        ("", ["VAPID_SUBJECT: is not set, and VAPID_PRIVATE_KEY needs it"]),
        ("https://example.org/write/to/us", ["VAPID_SUBJECT: is not accepted by push services"]),
        ("mailto:me@example.org", []),
        ("https://example.org", []),
    ],
)
def test_check_wants_a_subject_that_services_accept(subject: str, problems: list[str], settings):
    settings.VAPID_SUBJECT = subject
    assert [
        error.msg for error in run_checks(tags=["settings"]) if "VAPID" in error.msg
    ] == problems
