"""A stolen password: without the second factor it is not enough, and staff need one."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tailrace.events.management.subcommands import call_subcommand
from tailrace.events.models import Event
from tailrace.web.accounts.security import second_factor
from tailrace.web.models import SecondFactor
from tests.security.accounts import (
    CODE,
    LOGIN,
    OTHER,
    SETUP,
    code_of,
    entries,
    is_in,
    session,
    sign_in,
)
from tests.web.program import problem
from tests.web.visitor import words

pytestmark = pytest.mark.django_db


def test_a_stolen_password_is_not_enough(ann, factor) -> None:
    thief = Client()
    assert sign_in(client=thief, next="/me/inbox")["Location"] == CODE
    assert not is_in(thief)
    problem(thief.get("/api/feeds"), 401)
    for code in ("000000", "", "12345", "１２３４５６", code_of(factor, 40)):
        assert thief.post(CODE, {"code": code}).status_code == 422
    assert not is_in(thief)
    assert thief.get(SETUP).status_code == 302, "nor can they set up another one"
    assert thief.post("/accounts/second-factor/remove/").status_code == 302
    assert SecondFactor.objects.exists()


def test_with_the_code_one_is_in_and_the_log_says_so(ann, factor) -> None:
    client = Client()
    sign_in(client=client, next="/me/inbox")
    assert client.post(CODE, {"code": code_of(factor)})["Location"] == "/me/inbox"
    assert is_in(client)
    event = Event.objects.filter(type="security.login").get()
    assert event.payload["second_factor"] == "code"


def test_a_code_that_was_seen_is_good_for_nothing(ann, factor) -> None:
    client, thief = Client(), Client()
    code = code_of(factor)
    sign_in(client=client)
    assert client.post(CODE, {"code": code}).status_code == 302
    sign_in(client=thief)
    assert thief.post(CODE, {"code": code}).status_code == 422
    assert thief.post(CODE, {"code": code_of(factor, -1)}).status_code == 422, "nor an older one"


def test_codes_cannot_be_guessed(ann, factor) -> None:
    thief = Client()
    sign_in(client=thief)
    answers = [thief.post(CODE, {"code": "000000"}).status_code for _ in range(7)]
    assert answers == [422] * 5 + [429] * 2
    assert thief.post(CODE, {"code": code_of(factor)}).status_code == 429
    steps = {
        entry["step"]
        for entry in Event.objects.filter(type="security.login_failed").values_list(
            "payload", flat=True
        )
    }
    assert steps == {"code"}


def test_the_question_for_the_code_is_open_for_ten_minutes(ann, factor, clock) -> None:
    thief = Client()
    sign_in(client=thief)
    clock.step(601)
    assert thief.post(CODE, {"code": code_of(factor)})["Location"] == LOGIN
    sign_in(client=thief)
    ann.set_password(OTHER)
    ann.save()
    assert thief.post(CODE, {"code": code_of(factor)})["Location"] == LOGIN


def test_a_recovery_code_is_good_once_and_new_ones_end_the_old_ones(ann, factor) -> None:
    codes = second_factor.new_recovery_codes(factor)
    assert len(set(codes)) == second_factor.RECOVERY_CODES
    client = Client()
    sign_in(client=client)
    assert client.post(CODE, {"code": f" {codes[0].upper()} "}).status_code == 302
    for used in (codes[0], ""):
        again = Client()
        sign_in(client=again)
        assert again.post(CODE, {"code": used}).status_code == 422
    page = client.post("/accounts/second-factor/codes/")
    new = re.findall(r"<code>([0-9a-f-]{23})</code>", page.content.decode())
    assert len(new) == second_factor.RECOVERY_CODES
    sign_in(client=again)
    assert again.post(CODE, {"code": codes[1]}).status_code == 422
    assert again.post(CODE, {"code": new[1]}).status_code == 302


def test_who_reads_the_database_gets_no_codes(ann) -> None:
    row = second_factor.begin(ann)
    codes = second_factor.set_up(row, code_of(row)) or []
    row.refresh_from_db()
    assert second_factor.key_of(row) not in row.key
    stored = [code for code in codes if code.replace("-", "") in str(row.recovery_codes)]
    assert stored == []
    written = str(list(Event.objects.values_list("payload", flat=True)))
    assert second_factor.key_of(row) not in written


def test_it_is_set_up_on_the_page_and_removed_there(ann) -> None:
    client = session()
    page = client.get(SETUP).content.decode()
    assert 'src="data:image/svg+xml' in page
    row = SecondFactor.objects.get()
    assert row.confirmed_at is None
    assert f'value="{second_factor.key_of(row)}"' in page
    assert sign_in().status_code == 302, "it is not asked for before it is confirmed"
    assert client.post(SETUP, {"code": "000000"}).status_code == 422
    assert "Recovery codes" in words(client.post(SETUP, {"code": code_of(row)}))
    assert client.get(SETUP)["Location"] == "/me/account"
    assert "on since" in words(client.get("/me/account"))
    assert client.post("/accounts/second-factor/remove/").status_code == 302
    assert not SecondFactor.objects.exists()
    assert [name for name in entries() if name == "second_factor_changed"] == (
        ["second_factor_changed"] * 2
    )


def test_staff_without_it_see_nothing_but_its_set_up(ann, settings) -> None:
    User.objects.filter(pk=ann.pk).update(is_staff=True, is_superuser=True)
    settings.REQUIRE_SECOND_FACTOR = True
    client = session()
    for path in ("/", "/admin/", "/me/feeds", "/admin/auth/user/"):
        assert client.get(path)["Location"] == SETUP, path
    assert client.get("/", headers={"HX-Request": "true"}).status_code == 401
    problem(client.get("/api/feeds"), 403, "second-factor-required")
    assert "Staff need a second factor" in words(client.get(SETUP))
    client.post(SETUP, {"code": code_of(SecondFactor.objects.get())})
    assert client.get("/admin/").status_code == 200
    assert client.get("/api/feeds").status_code == 200


def test_a_session_of_staff_from_before_is_asked_for_the_code(ann, factor, settings) -> None:
    client = Client()
    client.force_login(ann)
    User.objects.filter(pk=ann.pk).update(is_staff=True)
    settings.REQUIRE_SECOND_FACTOR = True
    assert client.get("/admin/")["Location"] == CODE
    assert client.post(CODE, {"code": code_of(factor)}).status_code == 302
    assert client.get("/admin/").status_code == 200


def test_others_do_not_need_it(ann, settings) -> None:
    settings.REQUIRE_SECOND_FACTOR = True
    assert is_in(session())


def test_an_operator_removes_a_lost_one(ann, factor, capsys) -> None:
    call_subcommand("remove_second_factor", "ann")
    assert not SecondFactor.objects.exists()
    assert "second_factor_changed" in entries()
