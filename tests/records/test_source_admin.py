"""Operators make and change sources in the admin; what is wrong is named at its field."""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client

from tailrace.domains.records.models import Source
from tailrace.domains.records.sources.requests import PULL, schedule_name
from tailrace.jobs.models import Job, Schedule
from tests.records.kit import source

pytestmark = pytest.mark.django_db
LIST = "/admin/tailrace_records/source/"
VALID = {
    "name": "repository",
    "kind": "oai_pmh",
    "url": "https://example.org/oai",
    "settings": '{"set": "snow:depth"}',
    "cron": "0 4 * * *",
    "is_active": "on",
}


def client(*permissions: str) -> Client:
    """Return the client of a member of the staff with these permissions on sources."""
    user = User.objects.create_user("staff", is_staff=True)
    names = [f"{name}_source" for name in permissions]
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"url": "https://10.0.0.1/oai"}, "10.0.0.1 is not a public address"),
        ({"url": "https://169.254.169.254/"}, "not a public address"),
        ({"url": "file:///etc/passwd"}, "is not supported"),
        ({"url": "https://user:secret@example.org/"}, "user name before its host"),
        ({"settings": '{"colour": 1}'}, "colour"),
        ({"settings": '{"set": "a b"}'}, "set"),
        ({"settings": "{"}, "valid JSON"),
        ({"kind": "gopher"}, "not one of the available choices"),
        ({"cron": "at noon"}, "not a cron expression"),
        ({"name": "Two words"}, "lower-case letters"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_stored(change, message) -> None:
    reply = client("add", "view").post(f"{LIST}add/", VALID | change)
    assert reply.status_code == 200
    assert message in reply.content.decode()
    assert not Source.objects.exists()


def test_a_source_of_the_own_network_is_accepted(settings) -> None:
    settings.RECORDS_LOCAL_SOURCES = ["http://10.0.0.1:8080"]
    staff = client("add", "view")
    url = "http://10.0.0.1:8080/oai"
    assert staff.post(f"{LIST}add/", VALID | {"url": url}).status_code == 302
    other = VALID | {"name": "other", "url": "http://u:p@10.0.0.1:8080/oai"}
    assert staff.post(f"{LIST}add/", other).status_code == 200


def test_a_source_is_made_changed_and_deleted_with_its_schedule() -> None:
    staff = client("add", "change", "delete", "view")
    assert staff.post(f"{LIST}add/", VALID).status_code == 302
    row = Source.objects.get()
    schedule = Schedule.objects.filter(name=schedule_name(row.pk))
    assert schedule.get().cron == "0 4 * * *"
    Source.objects.update(cursor={"token": "x"}, records_read=9)
    page = f"{LIST}{row.pk}/change/"
    staff.post(page, VALID | {"cron": "0 5 * * *", "name": "renamed"})
    row.refresh_from_db()
    assert (row.cursor, row.name) == ({"token": "x"}, "repository"), "read on, and named as before"
    assert schedule.get().cron == "0 5 * * *"
    staff.post(page, VALID | {"url": "https://example.org/other"})
    row.refresh_from_db()
    assert (row.cursor, row.records_read) == (None, 0), "another address is read anew"
    staff.post(f"{LIST}{row.pk}/delete/", {"post": "yes"})
    assert not Source.objects.exists()
    assert not schedule.exists()


@pytest.mark.parametrize(("action", "cursor"), [("pull_now", {"a": 1}), ("start_over", None)])
def test_sources_are_pulled_on_demand_by_those_who_may_change_them(action, cursor) -> None:
    rows = [source("one", cursor={"a": 1}), source("off", is_active=False)]
    data = {"action": action, "_selected_action": [row.pk for row in rows], "confirmed": 2}
    viewer = client("view")
    viewer.post(LIST, data)
    assert not Job.objects.exists()
    User.objects.all().delete()
    reply = client("view", "change").post(LIST, data, follow=True)
    assert "one will be read" in reply.content.decode()
    assert "off is paused" in reply.content.decode()
    assert Job.objects.get(handler=PULL).lane == str(rows[0].pk)
    rows[0].refresh_from_db()
    assert rows[0].cursor == cursor
    past = "pulled" if action == "pull_now" else "started over 2 sources: one, off"
    assert LogEntry.objects.get().change_message == past


def test_an_error_is_shown_as_text() -> None:
    source(last_error="sent <script>alert(1)</script>", errors_in_row=2)
    staff = client("view")
    page = staff.get(f"{LIST}{Source.objects.get().pk}/change/").content.decode()
    assert "sent &lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "error" in staff.get(LIST).content.decode()
