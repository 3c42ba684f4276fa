"""The severity of breaches, by the data that was lost."""

from collections.abc import Iterable

from tailrace.domains.protection.models import Severity

CRITICAL = ("social security number", "credit card", "payment card", "debit card", "password")
WARNING = ("email", "phone")
HARMLESS = ("password hint", "password strength", "email message")
"""Parts of the names of data classes that contain a word above, but are less severe."""


def severity_of(data_classes: Iterable[str]) -> Severity:
    """Return the severity of a breach with these classes of lost data, as a source names them."""
    worst = Severity.INFO
    for name in data_classes:
        words = name.lower()
        if any(harmless in words for harmless in HARMLESS):
            continue
        if any(word in words for word in CRITICAL):
            return Severity.CRITICAL
        if any(word in words for word in WARNING):
            worst = Severity.WARNING
    return worst
