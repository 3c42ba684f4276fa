"""The link to a new password: who gets it, how often, and how long it is good."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.http import HttpResponse
from django.test import Client

from tailrace.jobs.models import Job
from tailrace.web.accounts.security.login_throttle import MAIL
from tailrace.web.handlers import PasswordResetMail
from tests.kit import claimed, run_and_settle
from tests.security.accounts import LOGIN, OTHER, RIGHT, entries, is_in, session, sign_in
from tests.web.visitor import words

pytestmark = pytest.mark.django_db

RESET = "/accounts/password/reset/"


def ask_for_mail(email: str, **more: Any) -> HttpResponse:
    answer: HttpResponse = Client().post(RESET, {"email": email}, **more)
    return answer


def link() -> str:
    [message] = mail.outbox
    assert message.to == ["ann@example.org"]
    return re.search(r"http://[^/]+(/accounts/\S+)", message.body)[1]


def test_the_answer_does_not_tell_whether_an_address_has_an_account(ann) -> None:
    User.objects.create_user("gone", "gone@example.org", password=RIGHT, is_active=False)
    answers = [ask_for_mail(f"{name}@example.org") for name in ("ann", "nobody", "gone")]
    assert {answer.status_code for answer in answers} == {200}
    assert len({words(answer) for answer in answers}) == 1
    jobs = Job.objects.filter(handler=PasswordResetMail.name).order_by("id")
    assert [job.payload["user"] for job in jobs] == [ann.pk, None, None], "each made a job"
    assert mail.outbox == [], "no mail is sent by the web"
    assert "example" not in str([job.payload for job in jobs])


def test_the_link_works_once_and_its_job_does_not_contain_it(ann, transactional_db) -> None:
    thief = session()
    ask_for_mail("ANN@example.org")
    run_and_settle(claimed(PasswordResetMail.name))
    path = link()
    token = path.rstrip("/").rpartition("/")[2]
    job = Job.objects.get(handler=PasswordResetMail.name)
    assert token not in f"{job.payload} {job.result}"
    owner = Client()
    form_page = owner.get(path)["Location"]
    assert token not in form_page
    passwords = {"new_password1": OTHER, "new_password2": OTHER}
    assert owner.post(form_page, passwords)["Location"] == LOGIN
    assert not is_in(thief)
    assert not is_in(owner), "the second factor would be passed over"
    assert "This link is not valid" in words(Client().get(path))
    assert sign_in(OTHER).status_code == 302
    assert {"reset_requested", "password_changed"} <= set(entries())


def test_a_mailbox_cannot_be_flooded(ann) -> None:
    answers = [ask_for_mail("ann@example.org", REMOTE_ADDR=f"192.0.2.{n}") for n in range(5)]
    assert [answer.status_code for answer in answers] == [200] * MAIL.free + [429] * 2
    assert "Retry-After" in answers[-1]
    unknown = [ask_for_mail("no@example.org", REMOTE_ADDR=f"192.0.3.{n}") for n in range(5)]
    assert [answer.status_code for answer in unknown] == [200] * MAIL.free + [429] * 2


def test_a_stolen_link_is_good_for_an_hour(ann, transactional_db, clock) -> None:
    ask_for_mail("ann@example.org")
    run_and_settle(claimed(PasswordResetMail.name))
    clock.stop()
    for seconds, is_good in ((3590, True), (20, False)):
        clock.step(seconds)
        answer = Client().get(link(), follow=True)
        assert ("This link is not valid" not in words(answer)) is is_good
