"""Objects are pages of names and values: no disabled forms, nothing empty, forms for the rest."""

import re
from collections.abc import Callable

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.db.models import Model
from django.test import Client
from django.utils import timezone

from tailrace.events.models import Event
from tailrace.jobs.models import Breaker, Schedule, Slot, SweepRun
from tailrace.jobs.platform.admin.base import EMPTY
from tests.jobs import operators

pytestmark = pytest.mark.django_db
MAKERS: dict[str, Callable[[], Model]] = {
    "breaker": lambda: Breaker.objects.create(name="q/host.example", failures=2),
    "sweeprun": lambda: SweepRun.objects.create(invariant="gone", outcome="checked"),
    "slot": lambda: Slot.objects.create(schedule_id=7, at=timezone.now(), outcome="missed"),
    "event": lambda: Event.objects.create(source="t", source_id="1", type="x", payload={"a": 1}),
    "job": lambda: operators.job(),
}


@pytest.fixture
def root() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.mark.parametrize("name", MAKERS)
def test_what_nobody_edits_is_no_form(root: Client, name: str) -> None:
    row = MAKERS[name]()
    app = row._meta.app_label
    page = root.get(f"/admin/{app}/{name}/{quote(row.pk)}/change/")
    text = page.content.decode()
    assert f'id="{name}_form"' not in text
    assert 'name="_save"' not in text
    values = [str(field.value) for group in page.context["details"] for field in group.fields]
    assert values
    assert not EMPTY & set(values)
    assert len(re.findall("<dt[ >]", text)) == len(values)


def test_of_what_may_be_edited_in_part_the_rest_is_no_field(root: Client) -> None:
    schedule = Schedule.objects.create(
        name="nightly", handler=operators.Trim.name, cron="0 3 * * *", owner="code"
    )
    page = root.get(f"/admin/tailrace_jobs/schedule/{schedule.pk}/change/")
    text = page.content.decode()
    assert "<dd>nightly" in text
    assert 'name="enabled"' in text
    assert 'name="cron"' not in text
    assert "Every seconds" not in text, "it has none"
    form = {"enabled": ""}
    assert (
        root.post(f"/admin/tailrace_jobs/schedule/{schedule.pk}/change/", form).status_code == 302
    )
    schedule.refresh_from_db()
    assert not schedule.enabled


def test_what_a_field_shows_is_escaped(root: Client) -> None:
    breaker = Breaker.objects.create(name="<b>q", last_error="<script>x</script>")
    text = root.get(f"/admin/tailrace_jobs/breaker/{quote(breaker.pk)}/change/").content.decode()
    assert "&lt;script&gt;x" in text
    assert "<script>x" not in text


@pytest.mark.parametrize("page", ["jobs/job", "events/event", "jobs/schedule", "photos/photo"])
def test_a_number_that_no_id_has_is_nothing(root: Client, page: str) -> None:
    """Python refuses to read a number of more than 4,300 digits."""
    number = "9" * 5_000
    assert root.get(f"/admin/tailrace_{page}/{number}/change/")["Location"] == "/admin/"
    assert root.get(f"/admin/tailrace_{page}/", {"q": number}).status_code == 200
