"""What times with odd offsets and NUL characters got: internal errors, and messages that block."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError
from django.test import Client

from tailrace.db.pagination import encode
from tailrace.db.times import in_utc, parse_time
from tailrace.domains.photos.exchange.kafka.incoming import MalformedMessage, parse_message
from tailrace.events.errors import InvalidPayload
from tailrace.events.management.subcommands import call_subcommand
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.subscriptions.api.recording.cloudevents import STRUCTURED
from tests.photos.pictures import picture
from tests.web.program import Program, problem, program
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db
ODD = ("2026-10-01T12:00:00+16:00", "2026-10-01T12:00:00-23:59", "0001-01-01T00:00:00+10:00",
       "9999-12-31T23:59:59-10:00")  # fmt: skip
LARGEST = "2026-10-01T12:00:00+15:59"


@pytest.fixture
def ann() -> Program:
    return program("ann", may=("tailrace_events.add_event",))


@pytest.mark.parametrize("time", ODD)
def test_no_odd_time_is_read(time: str) -> None:
    with pytest.raises(ValueError, match=r"beyond 15:59|years 1 to 9999"):
        parse_time(time)
    with pytest.raises(ValueError, match="no time zone"):
        in_utc(datetime(2026, 1, 1))
    assert parse_time(LARGEST) == datetime(2026, 9, 30, 20, 1, tzinfo=UTC)


@pytest.mark.parametrize("time", ODD)
def test_no_time_of_an_event_gets_an_internal_error(ann: Program, time: str) -> None:
    event = {"specversion": "1.0", "id": "1", "source": "/ci", "type": "stage.silence"}
    answer = ann.post("/events", event | {"time": time}, content_type=STRUCTURED)
    assert problem(answer, 422, "not-a-cloud-event")["errors"][0]["pointer"] == "#/time"
    answer = ann.post("/events", event | {"time": LARGEST}, content_type=STRUCTURED)
    assert answer.status_code == 201
    assert Event.objects.get().occurred_at == parse_time(LARGEST)


@pytest.mark.parametrize("time", ODD)
def test_no_time_of_a_photo_gets_an_internal_error(ann: Program, time: str) -> None:
    photo = {"storage_key": "x/1", "lat": 1, "lon": 2, "taken_at": time}
    problem(ann.post("/photos", photo), 422, "invalid")
    answer = Visitor(ann.user).post(
        "/photos/upload",
        {"file": SimpleUploadedFile("a.jpg", picture()), "lat": "1", "lon": "2", "taken_at": time},
    )
    assert answer.status_code == 422


@pytest.mark.parametrize("time", ODD)
def test_no_cursor_gets_an_internal_error(ann: Program, time: str) -> None:
    problem(ann.get("/inbox", cursor=encode(time, 1)), 422, "invalid")
    assert Visitor(ann.user).get("/me/inbox", after=f"u_{time}_1").status_code == 404


@pytest.mark.parametrize("time", ODD[:3])
def test_no_time_of_a_message_stops_the_consumer(time: str) -> None:
    with pytest.raises(MalformedMessage, match="taken_at"):
        parse_message(
            b'{"storage_key": "x/1", "lat": 1, "lon": 2, "taken_at": "%s"}' % time.encode()
        )


def test_no_event_from_outside_blocks_the_others_by_its_time() -> None:
    at = datetime(2026, 10, 1, tzinfo=timezone(timedelta(hours=20)))
    with pytest.raises(InvalidPayload, match="beyond 15:59"):
        publish(NewEvent("stage.silence", occurred_at=at))
    (event, _other) = publish(
        [NewEvent("stage.silence", occurred_at=at), NewEvent("stage.silence")], outside=True
    )
    assert event.type == "events.quarantined"


@pytest.mark.parametrize("time", ODD)
def test_no_time_of_a_command_gets_a_traceback(time: str) -> None:
    with pytest.raises(CommandError, match="is neither a time"):
        call_subcommand("jobs", "replay", "--failed-since", time)


@pytest.mark.parametrize(
    "address",
    [
        "/admin/tailrace_subscriptions/eventsubscription/?role=%00",
        "/admin/tailrace_subscriptions/eventsubscription/?state__exact=%00",
        "/admin/tailrace_jobs/queue/%00/change/",
        "/admin/auth/user/?username__startswith=a%00",
        "/admin/search/?s=%00",
        "/?who=%00",
        "/me/subscriptions/family?name=%00",
        "/feeds/projects/a%00b.atom",
        "/feeds/me/%00.atom",
        "/accounts/login/?next=%00",
        "/api/events/1?who=%00",
        "/api/nothing%00",
        "/nothing%00",
    ],
)
def test_no_nul_character_in_an_address_gets_an_internal_error(address: str) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.create_superuser("root"))
    answer = client.get(address)
    assert (answer.status_code, "NUL" in answer.content.decode()) == (400, True)


@pytest.mark.parametrize(
    "address",
    [
        "/admin/tailrace_jobs/job/?created_at__gte=2026-10-01T12:00:00%2B20:00",
        "/admin/tailrace_jobs/schedule/?next_run_at=2026-10-01T12:00:00-23:00",
        "/admin/auth/user/?date_joined__gte=2026-10-01T12:00:00%2B20:00",
        "/admin/tailrace_events/event/?recorded=2026-10-01T12:00:00%2B20:00",
        "/admin/tailrace_jobs/job/?id__gte=" + "9" * 30,
        "/admin/auth/user/" + "9" * 30 + "/change/",
    ],
)
def test_no_odd_value_in_the_admins_address_gets_an_internal_error(address: str) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.create_superuser("root"))
    assert client.get(address).status_code < 500


@pytest.mark.parametrize(
    ("address", "form"),
    [
        ("/accounts/login/", {"username": "a\0", "password": "b\0"}),
        ("/me/preferences", {"time_zone": "\0", "phone": "\0", "digest_at": "\0"}),
        ("/me/preferences/tokens", {"name": "\0", "scopes": "\0", "event_types": "\0"}),
        ("/me/preferences/blocks", {"username": "\0"}),
        ("/me/endpoints", {"url": "https://\0/", "description": "\0"}),
        ("/me/subscriptions/choice", {"event_type": "\0", "role": "\0", "channel": "\0"}),
        ("/me/subscriptions/preview", {"event_type": "\0", "role": "\0", "channel": "\0"}),
        ("/me/inbox/read", {"up_to": "\0"}),
        ("/admin/auth/group/add/", {"name": "\0"}),
        ("/admin/auth/user/", {"action": "\0", "_selected_action": "\0"}),
        ("/admin/auth/user/", {"action": "delete_selected", "_selected_action": "\0"}),
        ("/admin/tailrace_jobs/queue/", {"action": "pause", "_selected_action": "\0"}),
        ("/admin/tailrace_subscriptions/feed/", {"action": "revoke", "_selected_action": "\0"}),
    ],
)
def test_no_nul_character_in_a_form_gets_an_internal_error(address: str, form: Any) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.create_superuser("root"))
    answer = client.post(address, form)
    assert answer.status_code < 500, words(answer)
