"""What an alert means in words, and what its person should do: for pages, mails and texts.

A kind of alert is one more entry of TEXTS. No text holds a watched value, nor anything else of
`details` that is not named here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tailrace.domains.protection.models import Severity

MAX_NAMES = 5
MAX_NAME = 80


@dataclass(frozen=True, slots=True)
class AlertText:
    """The words for a kind of alert."""

    title: str
    to_do: str
    """What the person should do about it."""
    path: str = "/protection/"
    """The page where they do it."""
    names: str = ""
    """The entry of `details` with names that are shown: a text, or a list of them."""


TEXTS = {
    "exposure": AlertText(
        "Your data stands in a leak",
        "Look at what was lost. Change the password of the site, and of every other site where you"
        " use the same one.",
        "/protection/exposures",
        names="breaches",
    ),
    "ownership_transfer": AlertText(
        "The public record names a new owner of your property",
        "If you did not sell it, call the recorder's office and the police today, and keep the"
        " number of the document.",
        "/protection/properties",
        names="document",
    ),
    "lien_filing": AlertText(
        "A lien or mortgage was filed against your property",
        "If you did not agree to it, call the lender named in the record and the recorder's"
        " office.",
        "/protection/properties",
        names="document",
    ),
    "deed_change": AlertText(
        "A deed of your property was changed",
        "Read the document at the recorder's office. If you know nothing of it, ask a lawyer.",
        "/protection/properties",
        names="document",
    ),
    "tax_change": AlertText(
        "The tax record of your property changed",
        "Nothing is urgent: compare it with your next bill.",
        "/protection/properties",
        names="document",
    ),
    "removal_reappeared": AlertText(
        "A data broker lists you again",
        "We ask the broker again. You need not do anything.",
        "/protection/removals",
        names="broker",
    ),
    "removal_needs_person": AlertText(
        "A removal needs you",
        "The broker asks for something that only you can do. The removal says what.",
        "/protection/removals",
        names="broker",
    ),
    "removal_open_link": AlertText(
        "A data broker mails you a link",
        "Open the link in its mail: without it, the broker removes nothing.",
        "/protection/removals",
        names="broker",
    ),
    "removal_done": AlertText(
        "A data broker lists you no more",
        "You need not do anything. We look again from time to time.",
        "/protection/removals",
        names="broker",
    ),
    "removal_rejected": AlertText(
        "A data broker refuses to remove your data",
        "The removal says why. You may complain to your data protection authority.",
        "/protection/removals",
        names="broker",
    ),
}


def text_of(kind: str) -> AlertText:
    """Return the words for this kind; those of an unknown one are general."""
    if kind in TEXTS:
        return TEXTS[kind]
    words = kind.replace("_", " ").strip()
    return AlertText(
        f"Protection: {words}" if words else "Protection alert",
        "Look at your protection pages for more.",
    )


def names_of(kind: str, details: Mapping[str, Any]) -> str:
    """Return what the alert names, such as `Adobe, LinkedIn and 3 more`; empty: nothing."""
    value = details.get(text_of(kind).names) if text_of(kind).names else None
    names = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    shown = [str(name)[:MAX_NAME] for name in names[:MAX_NAMES]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def severity_words(severity: int) -> str:
    """Return the severity's name; empty if there is none of this number."""
    return Severity(severity).label if severity in Severity.values else ""
