"""Push messages as a browser reads them, and what a push service's answers do."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from events import clock as events_clock
from jobs.models import Attempt, Job
from jobs.states import State
from subscriptions import courier, devices, sending, vapid
from subscriptions.devices import DeviceError
from subscriptions.models import Device
from tests.kit import claimed
from tests.servers.browser import Browser, claims_of
from tests.servers.web import Answer, closed_port, serving, silent_port
from tests.subscriptions.stage import FIRST, Gala, happen, hold, person

pytestmark = pytest.mark.django_db(transaction=True)
PUSH = "subscriptions.push"
BOTH = ("subscriptions.notify", PUSH)
URL = "https://push.example.org/send/abc"


@pytest.fixture(autouse=True)
def _local(settings) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]


def with_browser(url: str, login: str = "ann") -> tuple[User, Browser, Device]:
    user, browser = person(login), Browser()
    hold(FIRST, user)
    return user, browser, devices.add(user, url, browser.p256dh, browser.auth, "Firefox")


def job() -> Job:
    return Job.objects.get(handler=PUSH)


def test_a_browser_reads_what_it_is_pushed_and_the_service_knows_by_whom(run_jobs) -> None:
    with serving(lambda asked: Answer(201)) as server:
        _ann, browser, _device = with_browser(f"{server.url}/send/abc")
        event = happen(payload={"title": "Faust é"})
        run_jobs(*BOTH)
    (asked,) = server.asked
    said = browser.read(asked)
    assert said["title"] == "A play was shown for the first time: Faust é"
    assert (said["type"], said["event"], said["tag"]) == (
        "stage.premiere",
        event.id,
        asked.headers["topic"],
    )
    assert b"Faust" not in asked.body
    assert asked.headers["ttl"] == "86400"
    assert asked.headers["urgency"] == "normal"
    claims = claims_of(asked)
    assert claims["aud"] == server.url
    assert claims["sub"] == "mailto:tests@example.org"
    assert claims["key"] == vapid.public_key()
    now = events_clock.now().timestamp()
    assert now + 3600 < claims["exp"] <= now + 86_400
    assert job().state == State.COMPLETED


def test_the_topic_is_the_threads_so_that_the_newest_stands_for_all(run_jobs) -> None:
    with serving(lambda asked: Answer(201)) as server:
        with_browser(server.url)
        for kind, title in ((Gala, "Faust"), (Gala, "Faust"), (Gala, "Hamlet")):
            happen(kind, payload={"title": title})
        run_jobs(*BOTH)
    topics = [asked.headers["topic"] for asked in server.asked]
    assert len(topics) == 3
    assert len(set(topics)) == 2
    assert all(len(topic) <= 32 for topic in topics)


def test_one_job_per_browser_and_another_cannot_read_it(
    run_jobs, django_assert_num_queries
) -> None:
    from cryptography.exceptions import InvalidTag
    from http_ece import ECEException

    from subscriptions.audience import audience
    from subscriptions.channels.push import Push

    with serving(lambda asked: Answer(201)) as server:
        ann, browser, device = with_browser(f"{server.url}/1")
        other = Browser()
        second = devices.add(ann, f"{server.url}/2", other.p256dh, other.auth)
        event = happen()
        run_jobs(*BOTH)
    keys = Job.objects.filter(handler=PUSH).values_list("routing_key", "lane")
    assert sorted(keys) == [
        (f"user:{ann.pk}:device:{one.pk}", server.url) for one in (device, second)
    ]
    by_path = {asked.path: asked for asked in server.asked}
    assert other.read(by_path["/2"]) == browser.read(by_path["/1"])
    with pytest.raises((ECEException, InvalidTag)):
        other.read(by_path["/1"])
    heard = [one for one in audience(event) if one.channel == "push"]
    with django_assert_num_queries(1):
        assert len(list(Push.deliveries(heard))) == 2


@pytest.mark.parametrize("status", [404, 410])
def test_a_browser_that_unsubscribed_itself_is_gone(run_jobs, status: int) -> None:
    with serving(lambda asked: Answer(status)) as server:
        _ann, _browser, device = with_browser(server.url)
        happen()
        run_jobs(*BOTH)
        happen()
        run_jobs(*BOTH)
    assert len(server.asked) == 1
    device.refresh_from_db()
    assert device.gone_at is not None
    assert job().state == State.CANCELLED
    assert "the browser is gone" in job().error


@pytest.mark.parametrize("status", [400, 401, 403, 413])
def test_what_a_service_refuses_fails_for_good(run_jobs, status: int) -> None:
    with serving(lambda asked: Answer(status)) as server:
        with_browser(server.url)
        happen()
        run_jobs(*BOTH)
    assert job().state == State.FAILED
    assert f"answered {status}" in job().error


@pytest.mark.parametrize("answer", [Answer(429, headers={"Retry-After": "120"}), Answer(503)])
def test_429_and_5xx_are_tried_again_as_asked(run_jobs, clock, answer: Answer) -> None:
    said = answer
    with serving(lambda asked: said) as server:
        _ann, browser, _device = with_browser(server.url)
        happen()
        run_jobs(*BOTH)
        assert (job().state, job().attempt) == (State.PENDING, 1)
        late = (job().due_at - events_clock.now()).total_seconds()
        assert 115 < late <= 120 if said.headers else 20 < late < 40
        said = Answer(201)
        clock.step(400)
        run_jobs(PUSH)
    assert job().state == State.COMPLETED
    first, second = server.asked
    assert browser.read(first) == browser.read(second)
    assert first.body != second.body, "a key of its own for each message"
    assert first.headers["topic"] == second.headers["topic"]


def test_a_service_that_hangs_is_left_alone_and_another_is_served(
    run_jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "TOTAL_SECONDS", 0.6)
    monkeypatch.setattr(courier, "PATIENCE", 0.2)
    with silent_port() as port, serving(lambda asked: Answer(201)) as server:
        ann, browser, _device = with_browser(f"http://127.0.0.1:{port}/1")
        devices.add(ann, f"{server.url}/2", browser.p256dh, browser.auth)
        began = time.monotonic()
        for _ in range(10):
            happen()
        run_jobs(*BOTH)
        assert time.monotonic() - began < 8
    assert len(server.asked) == 10


def test_a_push_service_on_a_private_address_is_refused(run_jobs, settings) -> None:
    with serving() as server:
        with_browser(server.url)
        settings.WEBHOOK_ALLOWED_NETWORKS = []
        settings.WEBHOOK_ALLOW_HTTP = True
        happen()
        run_jobs(*BOTH)
    assert server.asked == []
    assert job().state == State.FAILED
    assert "not a public address" in job().error


def test_a_message_is_cut_to_what_services_take(run_jobs) -> None:
    with serving(lambda asked: Answer(201)) as server:
        _ann, browser, _device = with_browser(server.url)
        happen(payload={"title": "\U0001f600" * 490, "note": '"\\' * 3000})
        run_jobs(*BOTH)
    assert browser.read(server.asked[0])["title"].startswith("A play was shown")


def test_a_worker_killed_between_effect_and_settlement_pushes_the_same_topic_again(
    run_jobs, clock
) -> None:
    from jobs import registry, rescue

    with serving(lambda asked: Answer(201)) as server:
        _ann, browser, _device = with_browser(server.url)
        happen()
        run_jobs("subscriptions.notify")
        registry.get(PUSH).handle_batch(claimed(PUSH))  # and here the worker dies
        assert job().state == State.RUNNING
        clock.step(100)
        rescue.rescue()
        clock.step(10)
        run_jobs(PUSH)
    assert job().state == State.COMPLETED
    first, second = server.asked
    assert browser.read(first) == browser.read(second)


def test_neither_the_key_nor_the_browsers_address_shows_in_errors(
    run_jobs, settings, capfd
) -> None:
    with_browser(f"http://127.0.0.1:{closed_port()}/send/s3cret-word")
    happen()
    run_jobs(*BOTH)
    written = capfd.readouterr()
    told = written.out + written.err + job().error
    told += "".join(Attempt.objects.values_list("message", flat=True))
    assert "Connect call failed" in told
    assert "s3cret-word" not in told
    assert settings.VAPID_PRIVATE_KEY not in told


# --- devices --------------------------------------------------------------------------------------


def test_a_browser_is_added_once_and_is_live_again_when_it_comes_back() -> None:
    ann, browser, device = with_browser(URL)
    devices.gone(device.pk)
    again = devices.add(ann, URL, browser.p256dh, browser.auth, "Firefox at home")
    assert again.pk == device.pk
    assert (again.gone_at, again.name) == (None, "Firefox at home")
    devices.remove(again)
    assert not Device.objects.exists()


def test_a_browser_becomes_anothers_only_if_it_proves_to_be_the_same() -> None:
    _ann, browser, device = with_browser(URL)
    bob, stranger = person("bob"), Browser()
    with pytest.raises(DeviceError, match="another person's"):
        devices.add(bob, URL, stranger.p256dh, stranger.auth)
    assert devices.add(bob, URL, browser.p256dh, browser.auth).pk == device.pk
    device.refresh_from_db()
    assert device.user == bob


def test_what_waits_for_a_browser_that_became_anothers_goes_to_nobody(run_jobs) -> None:
    with serving(lambda asked: Answer(201)) as server:
        _ann, browser, _device = with_browser(server.url)
        happen()
        run_jobs("subscriptions.notify")
        devices.add(person("bob"), server.url, browser.p256dh, browser.auth)
        run_jobs(PUSH)
    assert server.asked == []
    assert job().state == State.CANCELLED


@pytest.mark.parametrize(
    ("url", "p256dh", "auth", "words"),
    [
        ("https://10.0.0.1/", "", "", "not a public address"),
        ("http://push.example.org/", "", "", "use https://"),
        (URL, "AAAA", "", "p256dh is no key"),
        (URL, "not base64!", "", "p256dh is no key"),
        (URL, "B" + "A" * 86, "", "p256dh is no key"),
        (URL, "", "AAAA", "auth is no secret"),
        (URL, "", "é", "auth is no secret"),
    ],
)
def test_a_device_that_cannot_be_pushed_to_is_refused(
    url: str, p256dh: str, auth: str, words: str
) -> None:
    browser = Browser()
    with pytest.raises(DeviceError, match=words):
        devices.add(person("ann"), url, p256dh or browser.p256dh, auth or browser.auth)


def test_nobody_has_browsers_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "MOST", 1)
    ann, browser, _device = with_browser(URL)
    with pytest.raises(DeviceError, match="remove one first"):
        devices.add(ann, URL + "2", browser.p256dh, browser.auth)


# --- keys -----------------------------------------------------------------------------------------


def test_make_vapid_keys_prints_a_pair_that_is_taken(settings, capsys) -> None:
    from django.core.management import call_command

    call_command("make_vapid_keys")
    lines = capsys.readouterr().out.splitlines()
    settings.VAPID_PRIVATE_KEY = lines[0].removeprefix("VAPID_PRIVATE_KEY=")
    assert lines[1].endswith(vapid.public_key())
    assert vapid.authorization("https://push.example.org").endswith(f"k={vapid.public_key()}")


def test_without_keys_push_reaches_nobody() -> None:
    said = subprocess.run(
        [sys.executable, "-c", "import django; django.setup();"
         "from subscriptions import channels, vapid; found = channels.everything();"
         "print(found['push'].reaches_user, found['sms'].reaches_user, vapid.public_key() or 0)"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=60, check=True,
        env={"DJANGO_SETTINGS_MODULE": "config.settings", "PATH": ""},
    )  # fmt: skip
    assert said.stdout.split() == ["false", "false", "0"]


def test_push_that_was_switched_off_cancels_what_waits(run_jobs, settings) -> None:
    with_browser(URL)
    happen()
    run_jobs("subscriptions.notify")
    settings.VAPID_PRIVATE_KEY = ""
    run_jobs(PUSH)
    assert job().state == State.CANCELLED
    assert "VAPID_PRIVATE_KEY" in job().error
