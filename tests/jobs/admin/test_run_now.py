"""Run now: a form from the payload's model, with the errors at the fields."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.test import Client
from pydantic import BaseModel

from tailrace.jobs.models import Job
from tailrace.jobs.platform.admin.pages.payload_fields import fields_of
from tests.jobs import operators
from tests.sandbox.handlers import Log, Requested

pytestmark = pytest.mark.django_db
RUN = f"/admin/tailrace_jobs/queue/{Requested.name}/run/"
RIGHTS = ("tailrace_jobs.add_job", "tailrace_jobs.view_queue", "tailrace_jobs.view_job")


@pytest.fixture
def keeper() -> Client:
    return operators.client("keeper", *RIGHTS)


def send(client: Client, key: str = "k", **payload: Any) -> Any:
    """Send the form with a browser's empty fields."""
    names = ("title", "month", "size", "pages", "rate", "tags", "colours")
    entered = {f"payload-{name}": "" for name in names}
    options = dict.fromkeys(("due_at", "priority", "unique_key", "lane"), "")
    given = {f"payload-{name}": value for name, value in payload.items() if name in names}
    rest = {name: value for name, value in payload.items() if name not in names}
    return client.post(RUN, entered | options | {"request_key": key} | given | rest)


def errors_at(answer: Any, name: str) -> list[str]:
    assert answer.status_code == 422
    return list(answer.context["form"].errors.get(name, []))


def test_the_form_has_a_field_of_the_kind_of_each_value(keeper: Client) -> None:
    page = keeper.get(RUN).content.decode()
    tags = re.findall(r'(<(?:input|select|textarea)[^>]*?name="payload-(\w+)"[^>]*>)', page)
    inputs = {name: tag for tag, name in tags}
    assert 'type="date"' in inputs["month"]
    assert 'type="number"' in inputs["pages"]
    assert 'value="5"' in inputs["pages"]
    assert 'type="checkbox"' in inputs["urgent"]
    assert inputs["size"].startswith("<select")
    assert inputs["tags"].startswith("<textarea")
    assert "What stands above the report." in page


def test_the_form_creates_a_job(keeper: Client, clock) -> None:
    due = (clock.now() + timedelta(days=1)).replace(second=0, microsecond=0)
    answer = send(
        keeper, title="March", month="2026-03-01", size='"long"', pages="7", tags='["a"]',
        unique_key="march", due_at=f"{due:%Y-%m-%dT%H:%M}", priority="0",
    )  # fmt: skip
    job = Job.objects.get()
    assert answer.headers["Location"] == f"/admin/tailrace_jobs/job/{job.pk}/change/"
    assert job.payload == {
        "title": "March", "month": "2026-03-01", "size": "long", "pages": 7, "rate": None,
        "urgent": False, "tags": ["a"], "colours": {},
    }  # fmt: skip
    assert (job.unique_key, job.priority, job.due_at) == (
        "march", 0, due,
    )  # fmt: skip
    entry = LogEntry.objects.get()
    assert (entry.user.username, entry.change_message) == ("keeper", "requested")


@pytest.mark.parametrize(
    ("sent", "field", "detail"),
    [
        ({}, "payload-title", "required"),
        ({"title": "M"}, "payload-title", "at least 2 characters"),
        ({"title": "March", "pages": "101"}, "payload-pages", "less than or equal to 100"),
        ({"title": "March", "pages": "many"}, "payload-pages", "whole number"),
        ({"title": "March", "month": "soon"}, "payload-month", "valid date"),
        ({"title": "March", "size": '"vast"'}, "payload-size", "valid choice"),
        ({"title": "March", "tags": "a, b"}, "payload-tags", "valid JSON"),
        ({"title": "March", "tags": '["a", 5]'}, "payload-tags", "1: Input should be a valid str"),
        ({"title": "March", "colours": '{"a": "\\u0000"}'}, "payload-colours", "valid integer"),
        ({"title": "March", "due_at": "2020-01-01T00:00"}, "due_at", "is in the past"),
        ({"title": "March", "lane": "x" * 601}, "lane", "at most 600"),
    ],
)
def test_errors_stand_at_their_fields(keeper: Client, sent: dict, field: str, detail: str) -> None:
    (error,) = errors_at(send(keeper, **sent), field)
    assert detail in error
    assert not Job.objects.exists()


def test_what_cannot_be_stored_is_an_error_of_the_form(keeper: Client) -> None:
    answer = send(keeper, title="March", tags='["\\u0000"]')
    assert "NUL character" in " ".join(errors_at(answer, "__all__"))


def test_a_field_that_the_payload_does_not_have_is_named(keeper: Client) -> None:
    """As of a page that was opened before the field got another name."""
    answer = send(keeper, title="March", **{"payload-pgaes": "7"})
    (error,) = errors_at(answer, "__all__")
    assert error == f"{Requested.name} takes no 'pgaes'; did you mean 'pages'?"
    assert not Job.objects.exists()


def test_a_second_click_creates_no_second_job(keeper: Client) -> None:
    assert send(keeper, title="March").status_code == 302
    assert send(keeper, title="March").status_code == 302
    assert Job.objects.count() == 1
    assert "already created a job" in errors_at(send(keeper, title="April"), "__all__")[0]
    assert send(keeper, key="k2", title="April").status_code == 302


def test_it_needs_the_permission_of_the_handler() -> None:
    reader = operators.client(
        "reader",
        "tailrace_jobs.view_queue",
        "tailrace_jobs.replay_job",
        "tailrace_jobs.pause_queue",
    )
    assert reader.get(RUN).status_code == 403
    assert send(reader, title="March").status_code == 403
    assert (
        RUN not in reader.get("/admin/tailrace_jobs/queue/test.requested/change/").content.decode()
    )
    assert not Job.objects.exists()


def test_a_handler_without_a_permission_takes_no_requests(keeper: Client) -> None:
    assert keeper.get(f"/admin/tailrace_jobs/queue/{Log.name}/run/").status_code == 403
    assert keeper.get("/admin/tailrace_jobs/queue/no.such/run/").status_code == 404
    page = keeper.get(f"/admin/tailrace_jobs/queue/{quote(Log.name)}/change/").content.decode()
    assert "Takes no requests." in page


def test_the_page_of_a_queue_links_to_the_form(keeper: Client) -> None:
    assert RUN in keeper.get("/admin/tailrace_jobs/queue/test.requested/change/").content.decode()


def test_any_model_has_a_form() -> None:
    class Inner(BaseModel):
        lamp: str

    class Outer(BaseModel):
        """With all that needs JSON, and what may be empty."""

        inner: Inner
        either: int | str = 1
        maybe: bool | None = None
        note: str = "<b>"

    class Anything(BaseModel):
        model_config = {"extra": "allow"}

    kinds = {name: type(field).__name__ for name, field in fields_of(Outer).items()}
    assert kinds == {
        "payload-inner": "JSONField", "payload-either": "JSONField",
        "payload-maybe": "TypedChoiceField", "payload-note": "CharField",
    }  # fmt: skip
    assert list(fields_of(Anything)) == ["payload"]
