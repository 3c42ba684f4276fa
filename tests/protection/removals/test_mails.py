"""Requests by mail, through a real mail server."""

import pytest

from tailrace.jobs.models import Job
from tests.protection.removals.kit import DAY, history, now, started
from tests.servers.smtp import mail_server

pytestmark = pytest.mark.django_db


def test_a_mail_asks_a_broker_and_a_check_sees_the_removal(
    broker, ann, run_removals, clock, smtp
) -> None:
    row = started(ann, "records")
    run_removals()
    assert now(row).state == "submitted"
    [mail] = smtp.received
    assert mail.recipients == ["privacy@records.test"]
    assert mail.message["Reply-To"] == "ann@example.org"
    text = mail.message.get_content().replace("\r\n", "\n")
    assert "Full name: Ann Example\nPlace: Berlin\n" in text
    assert "ann@example.org" not in text, "only what the broker needs"
    clock.step(3 * DAY + 60)
    run_removals()
    assert now(row).state == "awaiting_confirmation"
    assert now(row).note == "still listed"
    broker.people.clear()
    clock.step(10 * DAY + 60)
    run_removals()
    assert history(row) == ["pending", "submitted", "awaiting_confirmation", "removed"]
    assert len(smtp.received) == 1


def test_a_mail_that_did_not_leave_is_not_submitted(broker, ann, run_removals, smtp, clock) -> None:
    smtp.data_reply = "451 try later"
    row = started(ann, "records")
    run_removals()
    assert (now(row).state, smtp.received) == ("pending", [])
    smtp.data_reply = ""
    clock.step(80)
    run_removals()
    assert now(row).state == "submitted"
    assert len(smtp.received) == 1


def test_a_mail_that_may_have_arrived_is_repeated_with_the_same_id(
    broker, ann, run_removals, smtp, clock
) -> None:
    smtp.before_250 = lambda: smtp.transports[-1].abort()
    row = started(ann, "records")
    run_removals()
    assert now(row).state == "pending"
    smtp.before_250 = lambda: None
    clock.step(80)
    run_removals()
    assert now(row).state == "submitted"
    ids = [mail.message["Message-ID"] for mail in smtp.received]
    assert len(ids) == 2
    assert len({*ids}) == 1
    assert ids[0].startswith(f"<removal_{row.pk}_1@")


def test_a_refused_mail_is_left_to_a_person(broker, ann, run_removals, smtp) -> None:
    smtp.recipient_reply = lambda address: "550 no such box"
    row = started(ann, "records")
    run_removals()
    assert now(row).state == "needs_person"
    assert "550 no such box" in now(row).note
    assert Job.objects.get(handler="protection.removal_mails").state == "failed"


def test_a_mail_server_that_is_away_costs_no_attempt(
    broker, ann, run_removals, settings, clock
) -> None:
    with mail_server() as server:
        for name, value in server.settings().items():
            setattr(settings, name, value)
        port = server.port
    row = started(ann, "records")
    for _ in range(6):
        run_removals()
        clock.step(4000)
    assert now(row).state == "pending"
    with mail_server(port) as server:
        clock.step(4000)
        run_removals()
        assert now(row).state == "submitted"
        assert len(server.received) == 1
