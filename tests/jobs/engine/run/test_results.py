"""What a call returns is stored as JSON, or the job completes without a result."""

from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
import structlog

from tailrace.jobs.models import Attempt
from tests.sandbox.handlers import Work

pytestmark = pytest.mark.django_db


def test_returning_completes_the_job_and_records_the_result(run_one) -> None:
    job = run_one(lambda job: {"sent": 3, "to": ["é"]})
    assert (job.state, job.result, job.error) == ("completed", {"sent": 3, "to": ["é"]}, "")
    assert job.finished_at is not None
    assert job.lease_until is None
    assert not Attempt.objects.exists()


def test_no_result_is_none(run_one) -> None:
    assert run_one(lambda job: None).result is None


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("result", "stored"),
    [
        (datetime(2026, 11, 22, 8, 30, tzinfo=UTC), "2026-11-22T08:30:00Z"),
        ({"on": date(2026, 11, 22)}, {"on": "2026-11-22"}),
        ([Decimal("1.50")], ["1.50"]),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        ({"work": Work(note="é")}, {"work": {"do": "nothing", "seconds": 0.0, "note": "é"}}),
        (Colour.RED, "red"),
        ({7}, [7]),
        ({Colour.RED: 1}, {"red": 1}),
    ],
    ids=["datetime", "date", "decimal", "uuid", "model", "enum", "set", "key"],
)
def test_a_result_of_usual_types_is_stored_as_json(run_one, result, stored) -> None:
    job = run_one(lambda job: result)
    assert (job.state, job.result, job.error) == ("completed", stored, "")


class Spiteful:
    def __iter__(self) -> Any:
        raise KeyError("no")

    __str__ = __repr__ = __iter__


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (object(), "Unable to serialize"),
        (float("nan"), "not JSON compliant"),
        ("a\0b", "NUL"),
        (["a\ud800b"], "surrogate"),
        ({"k\0": 1}, "NUL"),
        (10**5000, "digits"),
        ("x" * 70_000, "70002 bytes"),
        (Spiteful(), ""),
    ],
    ids=["object", "nan", "nul", "surrogate", "key", "digits", "size", "spiteful"],
)
def test_a_job_completes_without_a_result_it_cannot_store(run_one, result, message) -> None:
    """Its effect has happened: a failure would be replayed, and have it happen again."""
    with structlog.testing.capture_logs() as logs:
        job = run_one(lambda job: result)
    assert (job.state, job.attempt, job.result) == ("completed", 1, None)
    assert job.error.startswith("result not stored: ")
    assert message in job.error
    (entry,) = [entry for entry in logs if entry["event"] == "run.result_not_stored"]
    assert (entry["log_level"], entry["error"]) == ("warning", job.error)
    assert not Attempt.objects.exists()


async def awaited_by_nobody() -> None:
    pytest.fail("nobody awaits it")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "make", [awaited_by_nobody, lambda: (x for x in ())], ids=["coroutine", "generator"]
)
def test_a_call_that_ran_nothing_is_no_success(run_one, make) -> None:
    job = run_one(lambda job: make())
    assert job.state == "failed"
    assert "did not run" in job.error


def test_a_backslash_in_a_result_is_no_nul(run_one) -> None:
    assert run_one(lambda job: "a\\u0000b").result == "a\\u0000b"
