"""Titles and advice for the changes of a property."""

from dataclasses import dataclass

from tailrace.domains.protection.models import ChangeKind, Severity


@dataclass(frozen=True, slots=True)
class Advice:
    title: str
    to_do: str


_BY_KIND = {
    ChangeKind.OWNERSHIP_TRANSFER: Advice(
        "A deed names a new owner",
        "If you did not sell or give the property away: call the City Register and the police"
        " today, with the number of the document, and ask a lawyer how to have the deed voided.",
    ),
    ChangeKind.LIEN_FILING: Advice(
        "A mortgage or another lien was filed",
        "If you do not owe this: call the lender or the authority that the document names, dispute"
        " it in writing, and check your credit reports.",
    ),
    ChangeKind.DEED_CHANGE: Advice(
        "A document about the deed was recorded",
        "Read the document at the City Register. If you do not recognize it, ask a lawyer.",
    ),
    ChangeKind.TAX_CHANGE: Advice(
        "A tax document was recorded",
        "This is not urgent: compare it with your next tax bill. A transfer tax return that you did"
        " not file belongs to a sale: look for a new deed.",
    ),
}
_CRITICAL_LIEN = (
    "A lien of this size can lead to foreclosure. If you do not owe it: call the lender today, with"
    " the number of the document, and report it to the police."
)


def advice(kind: str, severity: int) -> Advice:
    words = _BY_KIND[ChangeKind(kind)]
    if kind == ChangeKind.LIEN_FILING and severity == Severity.CRITICAL:
        return Advice(words.title, _CRITICAL_LIEN)
    return words
