"""Guessing passwords: how many guesses an attacker has, what they learn, and whom they hold up."""

import time
from typing import Any

import pytest
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from tailrace.events.models import Event
from tailrace.web.accounts.security import login_throttle, password_hasher
from tailrace.web.accounts.security.log import ENTRIES_PER_WINDOW
from tailrace.web.accounts.security.login_throttle import ADDRESS, NAME, PAIR, TooManyAttempts
from tailrace.web.accounts.security.request import client_address
from tailrace.web.models import LoginThrottle
from tailrace.web.pages import error_pages
from tests.kit import at_once
from tests.security.accounts import RIGHT
from tests.web.visitor import words

pytestmark = pytest.mark.django_db

HERE, ELSEWHERE = "203.0.113.7", "198.51.100.20"


def sign_in(
    name: str = "ann",
    password: str = "wrong",  # noqa: S107
    address: str = HERE,
    client: Client | None = None,
) -> HttpResponse:
    form = {"username": name, "password": password}
    client = client or Client(raise_request_exception=False)
    answer: HttpResponse = client.post("/accounts/login/", form, REMOTE_ADDR=address)
    return answer


def guesses(count: int, **more: Any) -> list[int]:
    """Return the status of each of these attempts with a wrong password."""
    return [sign_in(**more).status_code for _ in range(count)]


def attempt_at(address: str, name: str = "ann") -> int:
    """Count an attempt without its password; return the seconds to wait, 0 if it is allowed."""
    request = RequestFactory().post("/accounts/login/", REMOTE_ADDR=address)
    try:
        login_throttle.attempt_login(request, name)
    except TooManyAttempts as error:
        return error.wait
    return 0


def failures() -> list[dict[str, Any]]:
    rows = Event.objects.filter(type="security.login_failed").order_by("id")
    return list(rows.values_list("payload", flat=True))


# --- how many guesses ---


def test_a_guesser_has_five_tries_and_then_waits_twice_as_long_each_time(ann, clock) -> None:
    assert guesses(PAIR.free) == [200] * PAIR.free
    waits = []
    for _ in range(4):
        answer = sign_in()
        assert answer.status_code == 429
        waits.append(int(answer["Retry-After"]))
        assert f"Try again in {waits[-1]} second" in words(answer)
        assert sign_in(password=RIGHT).status_code == 429, (
            "the right password is not looked at meanwhile"
        )
        clock.step(waits[-1])
        assert sign_in().status_code == 200
    assert waits == sorted(waits)
    assert waits[-1] >= 7 * waits[0]


def test_a_day_of_guessing_from_one_address_is_a_few_hundred_guesses(ann, clock) -> None:
    made, passed = 0, 0
    while passed < 86_400:
        wait = attempt_at(HERE)
        made += not wait
        clock.step(wait or 1)
        passed += wait or 1
    assert 100 < made < 250


def test_another_name_at_each_try_has_no_more_than_an_address_has() -> None:
    answers = [sign_in(f"user{number}").status_code for number in range(ADDRESS.free + 5)]
    assert answers == [200] * ADDRESS.free + [429] * 5
    assert sign_in("user", address=ELSEWHERE).status_code == 200


def test_many_addresses_share_the_guesses_of_a_name(ann) -> None:
    waits = [attempt_at(f"198.51.{number}.1") for number in range(NAME.free + 10)]
    assert waits[: NAME.free] == [0] * NAME.free
    assert all(0 < wait <= NAME.longest for wait in waits[NAME.free :])


def test_the_addresses_of_one_ipv6_customer_are_one() -> None:
    answers = [sign_in(f"user{n}", address=f"2001:db8:1:{n:x}::{n:x}") for n in range(25)]
    assert [answer.status_code for answer in answers][ADDRESS.free :] == [429] * 5
    assert sign_in("user", address="2001:db8:2::1").status_code == 200


def test_an_invented_x_forwarded_for_is_no_other_address(rf) -> None:
    def seen(remote: str, forwarded: str) -> str:
        headers = {"REMOTE_ADDR": remote, "HTTP_X_FORWARDED_FOR": forwarded}
        return client_address(rf.get("/", **headers))

    assert seen(HERE, "8.8.8.8") == HERE, "not from a proxy of ours"
    assert seen("127.0.0.1", f"8.8.8.8, {HERE}") == HERE, "what the client wrote comes first"
    assert seen("127.0.0.1", f"8.8.8.8, {HERE}, 127.0.0.1") == HERE
    assert seen("127.0.0.1", "nonsense") == "127.0.0.1"
    assert seen("", HERE) == HERE, "a Unix socket"
    assert seen("::ffff:127.0.0.1", HERE) == HERE


@pytest.mark.django_db(transaction=True)
def test_forty_guesses_at_once_are_forty_guesses(ann, settings) -> None:
    answers = at_once(12, lambda _: sign_in().status_code)
    assert answers.count(200) <= PAIR.free
    counted = LoginThrottle.objects.get(slot__startswith="pair:")
    assert counted.failures == answers.count(200)
    assert set(answers) <= {200, 429, 503}


def test_the_second_factor_and_the_confirmation_are_throttled_too(ann) -> None:
    client = Client(REMOTE_ADDR=HERE)
    client.force_login(ann)
    form = {"title": "mine", "confirm_password": "wrong"}
    answers = [client.post("/me/feeds", form) for _ in range(7)]
    assert "This is not your password" in words(answers[4])
    assert "Too many attempts" in words(answers[6])
    assert not ann.feeds.exists()


# --- what is learnt ---


def test_unknown_inactive_and_wrong_look_the_same(ann) -> None:
    User.objects.create_user("gone", password=RIGHT, is_active=False)
    User.objects.create_user("none", password=None)
    answers = [
        sign_in("ann"), sign_in("nobody"), sign_in("gone", RIGHT), sign_in("none"),
    ]  # fmt: skip
    assert {answer.status_code for answer in answers} == {200}
    texts = {words(answer) for answer in answers}
    assert len(texts) == 1, texts
    for number, name in enumerate(("ann", "nobody", "gone")):
        assert guesses(6, name=name, address=f"192.0.2.{number}") == [200] * 5 + [429]


def test_unknown_inactive_and_wrong_take_the_same_statements(ann) -> None:
    User.objects.create_user("gone", password=RIGHT, is_active=False)
    seen = set()
    for name in ("ann", "nobody", "gone"):
        with CaptureQueriesContext(connection) as queries:
            sign_in(name, RIGHT if name == "gone" else "wrong", address=f"192.0.2.{len(name)}")
        seen.add(tuple(query["sql"].split()[0] for query in queries))
    assert len(seen) == 1


@pytest.mark.slow
def test_the_time_of_an_answer_does_not_tell_whether_a_name_exists(ann, monkeypatch) -> None:
    monkeypatch.setattr(password_hasher.BoundedPasswordHasher, "iterations", 20_000)
    User.objects.filter(pk=ann.pk).update(password=make_password(RIGHT))
    User.objects.create_user("gone", password=RIGHT, is_active=False)
    times: dict[str, list[float]] = {"ann": [], "nobody": [], "gone": []}
    for _ in range(15):
        for name in times:
            LoginThrottle.objects.all().delete()
            began = time.thread_time()
            sign_in(name, RIGHT if name == "gone" else "wrong")
            times[name].append(time.thread_time() - began)
    shortest = [min(each) for each in times.values()]  # of processor time, which others do not take
    assert max(shortest) - min(shortest) < 0.4 * min(shortest), shortest


# --- whom they hold up ---


def test_an_attacker_elsewhere_does_not_lock_the_user_out(ann) -> None:
    assert guesses(8)[-1] == 429
    assert sign_in(password=RIGHT, address=ELSEWHERE)["Location"] == "/me/"


def test_a_thousand_attackers_do_not_hold_up_a_known_browser(ann) -> None:
    home = Client()
    assert sign_in(password=RIGHT, client=home)["Location"] == "/me/"
    home.post("/accounts/logout/")
    for number in range(NAME.free):
        attempt_at(f"198.51.{number}.1")
    assert sign_in(password=RIGHT, address=ELSEWHERE).status_code == 429, "a new browser waits"
    assert sign_in(password=RIGHT, address=ELSEWHERE, client=home)["Location"] == "/me/"


def test_a_stolen_cookie_of_a_known_browser_has_no_more_guesses(ann) -> None:
    home = Client()
    sign_in(password=RIGHT, client=home)
    home.post("/accounts/logout/")
    cookie = home.cookies[login_throttle.COOKIE]
    assert cookie["httponly"]
    assert "ann" not in cookie.value
    assert guesses(7, client=home) == [200] * 5 + [429] * 2
    User.objects.create_user("bob", password=RIGHT)
    assert guesses(6, name="bob", client=home)[-1] == 429, "it is nothing for another name"
    home.cookies[login_throttle.COOKIE] = "e30:forged"
    assert guesses(6, client=home)[0] == 200
    assert guesses(1, client=home) == [429]


def test_the_right_password_clears_ones_own_failures_alone(ann) -> None:
    User.objects.create_user("bob", password=RIGHT)
    guesses(4)
    assert sign_in(password=RIGHT).status_code == 302
    assert guesses(1) == [200]
    for _ in range(6):  # an attacker with an account of their own
        sign_in("bob", RIGHT)
        sign_in("ann")
    assert guesses(1) == [429]


def test_waiting_makes_up_for_failures(ann, clock) -> None:
    guesses(PAIR.free + 1)
    clock.step(PAIR.free * PAIR.refill)
    assert guesses(PAIR.free) == [200] * PAIR.free


# --- the log, and the work ---


def test_failures_are_in_the_log_by_powers_of_two_and_unknown_names_are_not_in_it(ann) -> None:
    guesses(4)
    guesses(2, name="hunter2-is-my-password")
    assert [(entry["user"], entry["failures"]) for entry in failures()] == [
        ("ann", 1),
        ("ann", 2),
        ("ann", 4),
        ("", 1),
        ("", 2),
    ]
    assert {entry["address"] for entry in failures()} == {HERE}
    assert not Event.objects.filter(payload__icontains="hunter2").exists()
    assert not LoginThrottle.objects.filter(slot__contains="ann").exists()


def test_a_botnet_cannot_fill_the_log_or_the_table(ann) -> None:
    for number in range(ENTRIES_PER_WINDOW + 5):
        address = f"198.51.{number}.1"
        sign_in("ann", address=address)
        sign_in(f"nobody{number}", address=address)
    by_user = [entry["user"] for entry in failures()]
    assert by_user.count("ann") == ENTRIES_PER_WINDOW
    assert by_user.count("") == ENTRIES_PER_WINDOW
    assert login_throttle.SLOTS <= 65_536
    slots = LoginThrottle.objects.values_list("slot", flat=True)
    assert all(int(slot.partition(":")[2]) < login_throttle.SLOTS for slot in slots)


def test_a_login_is_in_the_log(ann) -> None:
    sign_in(password=RIGHT)
    event = Event.objects.get(type="security.login")
    assert (event.actor, event.payload["second_factor"]) == ("ann", "none")
    assert event.payload["address"] == HERE


def test_the_page_of_the_admin_is_no_second_door(ann) -> None:
    answer = Client().post("/admin/login/", {"username": "ann", "password": RIGHT})
    assert answer["Location"] == "/accounts/login/?next=/admin/"
    client = Client()
    client.force_login(ann)
    assert client.get("/admin/login/").status_code == 403, "no loop for those who are not staff"
    assert client.get("/admin/password_change/").status_code in (302, 403)


@pytest.mark.django_db(transaction=True)
def test_forty_logins_at_once_leave_the_web_free(ann, settings, monkeypatch) -> None:
    monkeypatch.setattr(password_hasher.BoundedPasswordHasher, "iterations", 2_000_000)
    names = [f"user{number}" for number in range(12)]

    def login(number: int) -> tuple[int, str, float]:
        began = time.monotonic()
        answer = sign_in(names[number], address=f"192.0.2.{number}")
        return answer.status_code, answer.get("Retry-After", ""), time.monotonic() - began

    answers = at_once(12, login)
    refused = [answer for answer in answers if answer[0] == 503]
    assert len(refused) >= 12 - 2 * settings.PASSWORD_HASHES_AT_ONCE
    assert {retry for _, retry, _ in refused} == {str(error_pages.RETRY_AFTER)}
    # Who was refused has lost no try.
    slots = LoginThrottle.objects.filter(slot__startswith="pair:", failures__gt=0)
    assert slots.count() == 12 - len(refused)
