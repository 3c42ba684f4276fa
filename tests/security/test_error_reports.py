"""What a reader of error reports got: values of payloads, in the messages of exceptions."""

import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection
from pydantic import BaseModel

from tailrace.config.monitoring.sentry import scrub
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.handler import Permanent, Retry
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.runtime import report
from tests.jobs.operators import client
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "s3cret-value"
reported: list[report.Failure] = []


def keep(failure: report.Failure) -> None:
    reported.append(failure)


@pytest.fixture(autouse=True)
def _reporters(settings: Any) -> Iterator[None]:
    settings.JOBS_ERROR_REPORTERS = ["tailrace.jobs.runtime.report.to_log", f"{__name__}.keep"]
    report.reporters.cache_clear()
    reported.clear()
    yield
    report.reporters.cache_clear()


class Payload(BaseModel):
    number: int


def by_value(_job: Any) -> None:
    raise ValueError(f"{SECRET} is no number")


def by_model(_job: Any) -> None:
    Payload.model_validate({"number": SECRET})


def by_database(_job: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::int", [SECRET])


def by_key(_job: Any) -> None:
    {}[SECRET]


def by_cause(_job: Any) -> None:
    try:
        by_value(_job)
    except ValueError as error:
        raise ConnectionRefusedError("Connection refused") from error


def by_context(_job: Any) -> None:
    try:
        by_value(_job)
    except ValueError:
        raise RuntimeError(SECRET)  # noqa: B904


def by_retry(_job: Any) -> None:
    raise Retry(f"not yet: {SECRET}")


def by_permanent(_job: Any) -> None:
    raise Permanent(f"never: {SECRET}") from ValueError(SECRET)


@pytest.mark.parametrize(
    "fail",
    [by_value, by_model, by_database, by_key, by_cause, by_context, by_retry, by_permanent],
)
def test_no_value_of_a_payload_is_in_a_report(
    fail: Callable[[Any], None], scripted: Callable, caplog: Any, capfd: Any
) -> None:
    scripted("test.work", fail)
    enqueue(Working)
    drain("test.work")
    (failure,) = reported
    text = repr(failure)
    if failure.exception is not None:
        text += "".join(traceback.format_exception(failure.exception))
        text += repr(failure.exception.args)
        assert type(failure.exception).__name__ in failure.error_class
    written = capfd.readouterr()
    assert SECRET not in text
    assert SECRET not in caplog.text + written.out + written.err
    assert "job.retry" in written.err + caplog.text or failure.final
    stored = Attempt.objects.get()
    assert SECRET in stored.message + stored.traceback, "kept for those who may see payloads"


def test_messages_of_allowed_classes_are_reported(scripted: Callable, settings: Any) -> None:
    scripted("test.work", by_cause)
    enqueue(Working)
    drain("test.work")
    assert reported[0].error == "Connection refused"
    settings.JOBS_REPORTED_ERRORS = [
        *settings.JOBS_REPORTED_ERRORS,
        "tailrace.jobs.handler.outcomes.Permanent",
    ]
    scripted("test.work", by_permanent)
    enqueue(Working)
    drain("test.work")
    assert reported[-1].error == f"never: {SECRET}"


def test_no_message_of_a_request_is_sent_to_sentry() -> None:
    values = [
        {"type": "ValueError", "module": None, "value": SECRET},
        {"type": "DataError", "module": "django.db.utils", "value": f"invalid: {SECRET}"},
        {
            "type": "OperationalError",
            "module": "django.db.utils",
            "value": f"gone\nDETAIL: {SECRET}",
        },
    ]
    event: Any = {"exception": {"values": values}}
    sent = scrub(event, {})
    assert SECRET not in str(sent)
    assert [value["value"] for value in sent["exception"]["values"]] == ["", "", "gone"]


def test_no_value_of_a_payload_is_shown_to_staff_who_may_not_see_payloads(
    scripted: Callable,
) -> None:
    scripted("test.work", by_value)
    id = enqueue(Working)
    drain("test.work")
    Job.objects.filter(pk=id).update(error=SECRET)
    views = "tailrace_jobs.view_job", "tailrace_events.view_event"
    staff, permitted = (
        client("staff", *views),
        client("boss", *views, "tailrace_jobs.view_job_payload"),
    )
    for address in ("/admin/tailrace_jobs/job/", f"/admin/tailrace_jobs/job/{id}/change/"):
        assert SECRET not in staff.get(address).content.decode()
        assert SECRET in permitted.get(address).content.decode()
    assert (
        "builtins.ValueError"
        in staff.get(f"/admin/tailrace_jobs/job/{id}/change/").content.decode()
    )
