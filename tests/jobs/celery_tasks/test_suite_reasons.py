"""The documentation names each reason for which a test of Celery's suite is skipped."""

from tests.celery_suite.reasons import not_applicable
from tests.kit import ROOT


def test_each_reason_is_documented() -> None:
    page = (ROOT / "docs" / "explanation" / "compatibility.md").read_text()
    reasons = set(not_applicable(durable=True).values())
    assert [reason for reason in reasons if f"| {reason} |" not in page] == []
