"""How bad it is to stand in a breach, by what was lost."""

from collections.abc import Iterable

from tailrace.domains.protection.models import Severity

CRITICAL = ("social security number", "credit card", "payment card", "debit card", "password")
WARNING = ("email", "phone")
HARMLESS = ("password hint", "password strength", "email message")
"""Words that stand in the names of classes and do not mean the thing itself."""


def severity_of(data_classes: Iterable[str]) -> Severity:
    """Return the severity of a breach that lost these classes of data, in a source's words."""
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
