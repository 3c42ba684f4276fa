"""The texts of alerts, with advice for their users: for pages, mails and text messages.

To add a kind of alert, add an entry to TEXTS. The texts contain no watched value; of `details` they
show only the fields in `names`, `count` and `lost`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tailrace.domains.protection.alerts.advice import advice
from tailrace.domains.protection.models import Severity, WatchedProperty

MAX_NAMES = 5
MAX_NAME = 80


@dataclass(frozen=True, slots=True)
class AlertText:
    title: str
    to_do: str
    """What the user should do."""
    path: str = "/protection/"
    """The page where the user can do it."""
    names: str = ""
    """The key in `details` of the names to show: a text, or a list of texts."""
    count: str = ""
    """The key in `details` of the number of names, if the list has only the first of them."""


def _property(title: str, to_do: str) -> AlertText:
    return AlertText(title, to_do, "/protection/properties", "document", "changes")


def _removal(title: str, to_do: str) -> AlertText:
    return AlertText(title, to_do, "/protection/removals", "broker")


TEXTS = {
    "exposure": AlertText(
        "Your data was found in a leak",
        "Check which data was lost, and follow the advice there.",
        "/protection/exposures",
        names="breaches",
        count="leaks",
    ),
    "ownership_transfer": _property(
        "The public record names a new owner of your property",
        "If you did not sell it, call the recorder's office and the police today, and keep the"
        " number of the document.",
    ),
    "lien_filing": _property(
        "A lien or mortgage was filed against your property",
        "If you did not agree to it, call the lender named in the record and the recorder's"
        " office.",
    ),
    "deed_change": _property(
        "A deed of your property was changed",
        "Read the document at the recorder's office. If you do not recognize it, ask a lawyer.",
    ),
    "tax_change": _property(
        "The tax record of your property changed",
        "This is not urgent: compare it with your next bill.",
    ),
    "removal_reappeared": _removal(
        "A data broker lists you again",
        "We send the broker another request. You do not need to do anything.",
    ),
    "removal_needs_person": _removal(
        "A removal request needs your help",
        "The broker asks for something that only you can do. The request has the instructions.",
    ),
    "removal_open_link": _removal(
        "A data broker sends you a link by mail",
        "Open the link in its mail. Without that, the broker does not remove your data.",
    ),
    "removal_done": _removal(
        "A data broker no longer lists you",
        "You do not need to do anything. We check again from time to time.",
    ),
    "removal_rejected": _removal(
        "A data broker refuses to remove your data",
        "The request shows the reason. You may complain to your data protection authority.",
    ),
}


def text_of(kind: str) -> AlertText:
    """Return the texts for this kind, or general texts for an unknown kind."""
    if kind in TEXTS:
        return TEXTS[kind]
    words = kind.replace("_", " ").strip()
    return AlertText(
        f"Protection: {words}" if words else "Protection alert",
        "See your protection pages for details.",
    )


def to_do_of(kind: str, details: Mapping[str, Any]) -> str:
    """Return what the user should do: for a leak, by the data that was lost."""
    lost = details.get("lost")
    return " ".join(advice(lost)) if lost and isinstance(lost, list) else text_of(kind).to_do


def names_of(kind: str, details: Mapping[str, Any]) -> str:
    """Return the names in the alert, such as `Adobe, LinkedIn and 3 more`, or an empty string. The
    name of a property comes before its documents."""
    text = text_of(kind)
    value = details.get(text.names) if text.names else None
    names = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    shown = [str(name)[:MAX_NAME] for name in names[:MAX_NAMES]]
    count = details.get(text.count)
    more = max(len(names), count if isinstance(count, int) else 0) - len(shown)
    listed = ", ".join(shown) + (f" and {more} more" if more > 0 and shown else "")
    if listed and text.names == "document":
        listed = f"document {listed}"
    title = _property_title(details.get("property"))
    return f"{title} ({listed})" if title and listed else title or listed


def _property_title(id: Any) -> str:
    """Return the address or lot of a property. It is read now, and not stored in alerts and their
    events, which operators can read."""
    row = WatchedProperty.objects.filter(pk=id).first() if isinstance(id, int) else None
    return row.title if row else ""


def severity_words(severity: int) -> str:
    """Return the name of the severity, or an empty string for an unknown number."""
    return Severity(severity).label if severity in Severity.values else ""
