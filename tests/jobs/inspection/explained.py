"""Explain a job, and change the rows that explain reads."""

from datetime import timedelta
from typing import Any

from tailrace.db import clock
from tailrace.jobs.models import Job
from tailrace.jobs.platform.inspection.explain.explanation import explain


def words(id: int | None, code: str) -> str:
    """Return the words of the one reason of this code."""
    assert id is not None
    explanation = explain(id)
    reasons = [*explanation.reasons, *explanation.serving]
    (text,) = [reason.words for reason in reasons if reason.code == code]
    return text


def codes(id: int | None) -> list[str]:
    assert id is not None
    explanation = explain(id)
    return [reason.code for reason in (*explanation.reasons, *explanation.serving)]


def change(id: int | None, **fields: Any) -> int:
    assert id is not None
    assert Job.objects.filter(pk=id).update(**fields)
    return id


def ago(seconds: float) -> Any:
    return clock.now() - timedelta(seconds=seconds)
