"""Mails as a real SMTP server receives them, and what its answers do to the job."""

import signal
from pathlib import Path

import pytest
from django.contrib.auth.models import Group

from tailrace.config.devserver import mail_files
from tailrace.jobs.models import Job
from tailrace.jobs.runtime.states import State
from tailrace.net.sanitize import one_line
from tailrace.subscriptions.models import GroupAddress
from tests.kit import PATIENCE, wait_until, worker
from tests.servers.smtp import MailServer
from tests.subscriptions.sample_domain import (
    FIRST,
    Gala,
    Premiere,
    assign_role,
    person,
    publish_event,
)

pytestmark = pytest.mark.django_db(transaction=True)
BOTH = ("subscriptions.notify", "subscriptions.mail")


def mail_job() -> Job:
    return Job.objects.get(handler="subscriptions.mail")


def test_one_message_per_recipient_with_its_headers(run_jobs, smtp: MailServer) -> None:
    assign_role(FIRST, person("ann"), person("bob"))
    publish_event(Premiere, payload={"title": "Faust"})
    run_jobs(*BOTH)
    assert sorted(mail.recipients for mail in smtp.received) == [
        ["ann@example.org"],
        ["bob@example.org"],
    ]
    message = smtp.received[0].message
    assert message["To"] == smtp.received[0].recipients[0]
    assert message["Subject"] == "A play was shown for the first time: Faust"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Precedence"] == "bulk"
    assert message["List-Id"] == "stage.premiere <stage.premiere.127.0.0.1>"
    assert message["X-Tailrace-Event-Type"] == "stage.premiere"
    assert message["List-Unsubscribe"].strip().startswith("<http://127.0.0.1:8000/unsubscribe/")
    kinds = [part.get_content_type() for part in message.iter_parts()]
    assert kinds == ["text/plain", "text/html"]
    assert "You receive this mail as stage owner" in message.get_body(["plain"]).get_content()
    assert len({mail.message["Message-ID"] for mail in smtp.received}) == 2


def test_mails_on_one_thing_share_a_thread_and_others_do_not(run_jobs, smtp: MailServer) -> None:
    assign_role(FIRST, person("ann"))
    for event_type, title in ((Premiere, "Faust"), (Gala, "Faust"), (Premiere, "Hamlet")):
        publish_event(event_type, payload={"title": title})
    run_jobs(*BOTH)
    roots = {
        mail.message["Subject"]: (mail.message["References"], mail.message["In-Reply-To"])
        for mail in smtp.received
    }
    assert all(references == reply for references, reply in roots.values())
    faust = {root for subject, root in roots.items() if "Faust" in subject}
    hamlet = {root for subject, root in roots.items() if "Hamlet" in subject}
    assert len(roots) == 3
    assert len(faust) == len(hamlet) == 1
    assert faust != hamlet


def test_a_batch_goes_through_one_connection(run_jobs, smtp: MailServer) -> None:
    assign_role(FIRST, *(person(f"p{number}") for number in range(12)))
    publish_event()
    run_jobs(*BOTH)
    assert len(smtp.received) == 12
    assert {mail.connection for mail in smtp.received} == {1}


def test_control_characters_never_reach_a_header(run_jobs, smtp: MailServer) -> None:
    assign_role(FIRST, person("ann"))
    publish_event(payload={"title": "Faust\r\nBcc: eve@example.org\x1b\u2028\x00"[:-1]})
    run_jobs(*BOTH)
    (one,) = smtp.received
    assert one.recipients == ["ann@example.org"]
    assert one.message["Bcc"] is None
    assert one.message["Subject"].endswith("Faust Bcc: eve@example.org")
    assert one_line("a\r\n\tb\x85c\x7f") == "a b c"
    assert len(one_line("x" * 1000)) == 300


@pytest.mark.parametrize(
    "address", ["no-address", "a@b\r\nBcc: eve@example.org", "a b@example.org", "<ann@example.org>"]
)
def test_a_bad_address_fails_for_good_and_nothing_is_sent(
    run_jobs, smtp: MailServer, address: str
) -> None:
    assign_role(FIRST, person("ann", email=address), person("bob"))
    publish_event()
    run_jobs(*BOTH)
    assert smtp.addressed() == ["bob@example.org"]
    failed = Job.objects.get(handler="subscriptions.mail", state=State.FAILED)
    assert "is not a mail address" in failed.error
    assert "\n" not in failed.error


def test_4xx_is_tried_again_and_then_delivered_once(run_jobs, smtp: MailServer, clock) -> None:
    assign_role(FIRST, person("ann"))
    smtp.recipient_reply = lambda address: "450 mailbox busy"
    publish_event()
    run_jobs(*BOTH)
    assert (mail_job().state, mail_job().attempt) == (State.PENDING, 1)
    assert "450 mailbox busy" in mail_job().error
    smtp.recipient_reply = lambda address: ""
    clock.step(90)
    run_jobs("subscriptions.mail")
    assert mail_job().state == State.COMPLETED
    assert smtp.addressed() == ["ann@example.org"]


def test_5xx_is_permanent_and_keeps_the_connection(run_jobs, smtp: MailServer) -> None:
    assign_role(FIRST, person("ann"), person("bob"))
    smtp.recipient_reply = lambda address: "550 no such user" if "ann" in address else ""
    publish_event()
    run_jobs(*BOTH)
    failed = Job.objects.get(handler="subscriptions.mail", state=State.FAILED)
    assert "550 no such user" in failed.error
    assert failed.attempt == 1
    assert smtp.addressed() == ["bob@example.org"]
    assert smtp.connections == 1


@pytest.mark.parametrize(
    ("reply", "state"), [("451 try later", State.PENDING), ("554 spam", State.FAILED)]
)
def test_the_reply_after_data_decides_too(
    run_jobs, smtp: MailServer, reply: str, state: State
) -> None:
    assign_role(FIRST, person("ann"))
    smtp.data_reply = reply
    publish_event()
    run_jobs(*BOTH)
    assert mail_job().state == state
    assert reply in mail_job().error


def test_a_connection_dropped_after_data_is_tried_again(run_jobs, smtp: MailServer, clock) -> None:
    assign_role(FIRST, person("ann"))
    smtp.drop_after_data = True
    publish_event()
    run_jobs(*BOTH)
    assert mail_job().state == State.PENDING
    smtp.drop_after_data = False
    clock.step(90)
    run_jobs("subscriptions.mail")
    assert mail_job().state == State.COMPLETED
    message_id = smtp.received[0].message["Message-ID"]
    assert mail_job().result == {"message_id": message_id, "server": smtp.name}


def test_a_server_that_falls_silent_is_tried_again(run_jobs, smtp: MailServer, settings) -> None:
    settings.EMAIL_TIMEOUT = 0.3
    smtp.seconds_after_data = 2
    assign_role(FIRST, person("ann"))
    publish_event()
    run_jobs(*BOTH)
    assert mail_job().state == State.PENDING
    assert "timed out" in mail_job().error


def test_a_lost_connection_costs_at_most_one_attempt(run_jobs, smtp: MailServer, clock) -> None:
    assign_role(FIRST, person("ann"))
    publish_event()
    run_jobs(*BOTH)
    smtp.hang_up()
    publish_event()
    run_jobs(*BOTH)
    clock.step(90)
    run_jobs("subscriptions.mail")
    states = Job.objects.filter(handler="subscriptions.mail").values_list("state", flat=True)
    assert set(states) == {State.COMPLETED}
    assert len(smtp.received) == 2


def test_after_a_kill_the_same_message_id_is_sent_again(
    run_jobs, smtp: MailServer, clock, process_env, tmp_path: Path
) -> None:
    assign_role(FIRST, person("ann"))
    env = process_env | {
        "EMAIL_URL": smtp.url,
        "DJANGO_SETTINGS_MODULE": "tests.subscriptions.sample_app.site",
    }
    with worker(env, ["subscriptions.mail"], log=tmp_path / "mailer.log") as mailer:
        smtp.before_250 = lambda: mailer.signal(signal.SIGKILL)
        publish_event(payload={"title": "Faust"})
        run_jobs("subscriptions.notify")
        wait_until(lambda: smtp.received, 30, "the mail")
        assert mailer.process.wait(PATIENCE) == -signal.SIGKILL
    assert mail_job().state == State.RUNNING
    smtp.before_250 = lambda: None
    clock.step(200)
    from tailrace.jobs.engine.maintenance.ticking.rescue import rescue

    rescue()
    clock.step(10)
    run_jobs("subscriptions.mail")
    assert mail_job().state == State.COMPLETED
    first, second = smtp.received
    assert first.message["Message-ID"] == second.message["Message-ID"]


def test_a_groups_mail_goes_to_its_address(run_jobs, smtp: MailServer) -> None:
    team = Group.objects.create(name="team")
    GroupAddress.objects.create(group=team, email="team@example.org")
    person("ann").groups.add(team)
    assign_role(FIRST, groups=(team,))
    publish_event()
    run_jobs(*BOTH)
    assert smtp.addressed() == ["team@example.org"]


def test_by_default_each_mail_is_one_file(run_jobs, settings, tmp_path: Path) -> None:
    settings.EMAIL_BACKEND = f"{mail_files.__name__}.EmailBackend"
    settings.EMAIL_FILE_PATH = str(tmp_path / "mail")
    assign_role(FIRST, person("ann"), person("bob"))
    publish_event()
    run_jobs(*BOTH)
    Job.objects.filter(handler="subscriptions.mail").update(
        state=State.PENDING, finished_at=None, done_on=None
    )
    run_jobs("subscriptions.mail")
    files = list((tmp_path / "mail").iterdir())
    assert sorted(file.suffix for file in files) == [".eml", ".eml"]
    texts = [file.read_text() for file in files]
    assert sum("To: ann@example.org" in text for text in texts) == 1
    assert sum("To: bob@example.org" in text for text in texts) == 1
