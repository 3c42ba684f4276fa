"""What an attacker writes into an event does not become a header of the mails about it."""

import pytest
from django.contrib.auth.models import User

from tailrace.events.publish import NewEvent, publish
from tailrace.subscriptions.models import EventSubscription
from tests.servers.smtp import MailServer

pytestmark = pytest.mark.django_db(transaction=True)

BREAKS = ["\r\n", "\n", "\r", "\u2028", "\x85", "\x0b", "\r\n\r\n"]
HEADERS = [
    "X-OBS-Request-Action-source", "X-OBS-Request-Action-target", "X-OBS-Request-Action-type",
    "X-OBS-Request-Creator", "X-OBS-Request-Id", "X-OBS-Request-State", "X-OBS-Review-By_User",
    "X-OBS-event-type",
]  # fmt: skip


@pytest.fixture(autouse=True)
def ann() -> None:
    user = User.objects.create_user("ann", "ann@example.org")
    EventSubscription.objects.create(
        event_type="builds.review_wanted", role="reviewer", channel="mail", user=user
    )


def test_values_add_no_header_and_no_recipient(run_jobs, smtp: MailServer) -> None:
    for line_break in BREAKS:
        end = f"{line_break}X-OBS-Request-State: accepted{'y' * 900}"
        evil = f"x{line_break}Bcc: eve@example.org{end}"
        action = {"type": evil, "sourceproject": evil, "targetproject": evil, evil: evil}
        payload = {"author": evil, "state": evil, "by_user": "ann", "actions": [action]}
        publish(NewEvent("builds.review_wanted", payload | {"number": 7}))
    run_jobs("subscriptions.notify", "subscriptions.mail")
    assert len(smtp.received) == len(BREAKS)
    for mail in smtp.received:
        assert mail.recipients == ["ann@example.org"]
        names = [name for name in mail.message if name.startswith(("X-OBS", "Bcc"))]
        assert sorted(names) == HEADERS
        assert mail.message["X-OBS-Request-State"].strip().startswith("x")
        assert all(len(value) <= 700 for value in mail.message.values())


def test_odd_line_breaks_do_not_make_a_mail_undeliverable(run_jobs, smtp: MailServer) -> None:
    for line_break in ("\u2028", "\x85"):
        long = line_break.join(["z" * 90] * 20)
        payload = {"number": 7, "by_user": "ann", "description": long}
        publish(NewEvent("builds.review_wanted", payload))
    run_jobs("subscriptions.notify", "subscriptions.mail")
    assert len(smtp.received) == 2
    for mail in smtp.received:
        text = mail.message.get_body(["plain"]).get_content()
        assert text.split().count("z" * 90) == 20
