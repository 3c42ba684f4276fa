"""The X-OBS-* headers of mails, which people's filters look at."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from pydantic import BaseModel

from tailrace.domains.builds.event_types.obs_headers import MAX_ACTIONS
from tailrace.events.publish import NewEvent, Recorded, publish
from tailrace.events.types import EventType
from tailrace.subscriptions.channels.mail.email_message import event_message
from tailrace.subscriptions.models import EventSubscription
from tailrace.subscriptions.types.subscribable import mail_headers_of
from tests.servers.smtp import MailServer

pytestmark = pytest.mark.django_db(transaction=True)

BUILT = {
    "project": "home:alice", "package": "hello", "repository": "standard", "arch": "x86_64",
    "workerid": "worker1:1", "reason": "source change",
}  # fmt: skip
ACTIONS = [
    {"type": "submit", "sourceproject": "home:bob", "sourcepackage": "hello",
     "targetproject": "openSUSE:Factory", "targetpackage": "hello"},
    {"type": "release", "sourceproject": "home:bob", "targetproject": "openSUSE:Factory",
     "targetrepository": "standard"},
    {"type": "delete", "targetproject": "openSUSE:Factory"},
]  # fmt: skip
REQUEST = {"number": 7, "author": "bob", "state": "review", "actions": ACTIONS}
OF_REQUEST = {
    "X-OBS-Request-Creator": "bob",
    "X-OBS-Request-Id": "7",
    "X-OBS-Request-State": "review",
    "X-OBS-Request-Action-type": "submit",
    "X-OBS-Request-Action-target": "openSUSE:Factory/hello",
    "X-OBS-Request-Action-source": "home:bob/hello",
    "X-OBS-Request-Action-1-type": "release",
    "X-OBS-Request-Action-1-target": "openSUSE:Factory/standard",
    "X-OBS-Request-Action-1-source": "home:bob",
    "X-OBS-Request-Action-2-type": "delete",
    "X-OBS-Request-Action-2-target": "openSUSE:Factory",
}
COMMENT = {"id": 1, "commenter": "carol", "comment_body": "hm"}
PACKAGE = {"project": "home:alice", "package": "hello"}


def record(type: str, payload: dict[str, Any]) -> Recorded:
    return publish(NewEvent(f"builds.{type}", payload))[0]


@pytest.mark.parametrize(
    ("type", "payload", "headers"),
    [
        ("build_fail", BUILT, {
            "X-OBS-Package": "home:alice/hello",
            "X-OBS-Repository": "standard/x86_64",
            "X-OBS-Worker": "worker1:1",
            "X-OBS-Rebuild-Reason": "source change",
        }),
        ("service_fail", PACKAGE, {"X-OBS-Package": "home:alice/hello"}),
        ("request_create", REQUEST, OF_REQUEST),
        ("request_statechange", REQUEST, OF_REQUEST),
        ("review_wanted", REQUEST | {"by_group": "factory"},
         OF_REQUEST | {"X-OBS-Review-By_Group": "factory"}),
        ("review_wanted", REQUEST | {"by_project": "p", "by_package": "q"},
         OF_REQUEST | {"X-OBS-Review-By_Package": "p/q"}),
        ("comment_for_package", PACKAGE | COMMENT, {"X-OBS-Request-Commenter": "carol"}),
        ("comment_for_request", REQUEST | COMMENT,
         OF_REQUEST | {"X-OBS-Request-Commenter": "carol"}),
    ],
)  # fmt: skip
def test_headers_are_those_of_obs(type: str, payload: dict, headers: dict) -> None:
    assert mail_headers_of(record(type, payload)) == {"X-OBS-event-type": type} | headers


def test_a_mail_arrives_with_them(run_jobs, smtp: MailServer) -> None:
    ann = User.objects.create_user("ann", "ann@example.org")
    EventSubscription.objects.create(
        event_type="builds.review_wanted", role="reviewer", channel="mail", user=ann
    )
    record("review_wanted", REQUEST | {"by_user": "ann"})
    run_jobs("subscriptions.notify", "subscriptions.mail")
    [mail] = smtp.received
    assert mail.message["X-OBS-event-type"] == "review_wanted"
    assert mail.message["X-OBS-Request-Id"] == "7"
    assert mail.message["X-OBS-Review-By_User"] == "ann"
    assert mail.message["X-Tailrace-Event-Type"] == "builds.review_wanted"


def test_a_request_of_many_actions_has_headers_for_some() -> None:
    headers = mail_headers_of(record("request_create", REQUEST | {"actions": ACTIONS[:1] * 500}))
    assert f"X-OBS-Request-Action-{MAX_ACTIONS - 1}-type" in headers
    assert f"X-OBS-Request-Action-{MAX_ACTIONS}-type" not in headers


def test_odd_payloads_have_the_headers_that_are_valid() -> None:
    event = record("request_create", {"number": 7, "author": None, "actions": [{"type": {"a": 1}}]})
    assert mail_headers_of(event) == {
        "X-OBS-event-type": "request_create",
        "X-OBS-Request-Id": "7",
    }


class WithoutHeaders(EventType):
    """An event whose headers cannot be made."""

    name = "test.without_headers"

    @classmethod
    def mail_headers(cls, event: Recorded) -> dict[str, str]:
        return {"X-Number": str(1 / event.raw_payload["n"])}

    class Payload(BaseModel):
        n: int


def test_headers_that_cannot_be_made_cost_no_mail() -> None:
    for n, header in ((4, "0.25"), (0, None)):
        (event,) = publish(NewEvent(WithoutHeaders, {"n": n}))
        mail = event_message(event, address="ann@example.org", role="reviewer", job_id=1)
        assert mail.message()["X-Number"] == header
        assert mail.message()["X-Tailrace-Event-Type"] == "test.without_headers"
