"""The documentation names each reason for which a test of the downloaded suites is skipped."""

from tests.django_tasks_suite.reasons import NOT_APPLICABLE
from tests.kit import ROOT


def test_each_reason_is_documented() -> None:
    page = (ROOT / "docs" / "explanation" / "compatibility.md").read_text()
    assert [reason for reason in set(NOT_APPLICABLE.values()) if f"| {reason} |" not in page] == []
