"""Compare the public records of a property with the last snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from tailrace.domains.protection.models import ChangeKind, Severity
from tailrace.domains.protection.services.properties.documents import Document
from tailrace.domains.protection.services.properties.names import keys_of

Documents = Mapping[str, Document]

# The codes come from "Document Control Codes" of ACRIS (dataset 7isb-wh4c).
OTHER_DEEDS = ("IDED", "CORRD", "CONDEED", "CORR, LE", "LTPA", "REIT")
"""In rem and confirmatory deeds, corrections of deeds and life estates, letters patent, deeds of
investment trusts. The codes of other deeds begin with DEED."""
DEED_AMENDMENTS = (
    "CTOR", "DCTO", "EASE", "DECL", "CDEC", "ADEC", "SCDEC", "DECM", "CNTR", "MCON", "ACON", "CODP",
    "NAPP", "DEVR", "AIRRIGHT", "TORREN", "TODD", "RTOD", "PAT",
)  # fmt: skip
"""Court orders, easements, declarations, contracts of sale, condemnations, development and air
rights, deeds that transfer on death and their revocations, powers of attorney. They change the
value of a deed, or who may sign the next one."""
LIENS = ("MTGE", "M&CON", "MMTG", "CMTG", "SMTG", "FL", "AMFL", "FTL", "TLS", "JUDG", "LOCC")
"""Mortgages, federal liens, tax lien sales, judgments, common charges."""
TAXES = ("RPTT", "RETT", "RPTT&RET", "AMTX", "ATL", "AMTL", "DTL", "RTXL")
"""Returns of transfer taxes, and changes of tax liens."""

LIEN_CRITICAL_AMOUNT = 100_000
"""Dollars from which a new lien is critical; a smaller one is a warning."""


@dataclass(frozen=True, slots=True)
class Change:
    """A document that is new or has changed."""

    document: Document
    kind: ChangeKind
    severity: Severity
    owners_before: tuple[str, ...] = ()
    """For an ownership transfer: the grantees of the previous deed, in the source's spelling."""


def is_deed(document: Document) -> bool:
    return document.type.startswith("DEED") or document.type in OTHER_DEEDS


def merged(old: Documents, new: Documents, most: int) -> dict[str, Document]:
    """Return the documents to keep: the newest `most` of both.

    Public records are not deleted. A document that is missing in `new` therefore stays, and so do
    the parties of a document that has none in `new`: the source will publish them again.
    """
    together = {**old, **new}
    for id in old.keys() & new.keys():
        before, now = old[id], new[id]
        if before.grantees and not now.grantees and not now.grantors:
            together[id] = replace(now, grantors=before.grantors, grantees=before.grantees)
    newest = sorted(together.values(), key=lambda document: document.order)[-most:]
    return {document.id: document for document in newest}


def compare(old: Documents, new: Documents, *, complete: bool) -> list[Change]:
    """Return the changes in `new`, the oldest document first.

    `complete=False`: the snapshot has only the newest documents. Older documents are then not new.
    """
    newest = max((document.recorded for document in old.values()), default="")
    deeds = sorted((each for each in old.values() if is_deed(each)), key=lambda each: each.order)
    changes = []
    for document in sorted(new.values(), key=lambda each: each.order):
        before = old.get(document.id)
        if before is None and not complete and document.recorded < newest:
            continue
        if before is not None and before.compared() == document.compared():
            continue
        if is_deed(document):
            changes.append(_deed_change(document, deeds))
            deeds = [each for each in deeds if each.id != document.id] + [document]
            deeds.sort(key=lambda each: each.order)
        elif (change := _other_change(document)) is not None:
            changes.append(change)
    return changes


def _deed_change(document: Document, deeds: list[Document]) -> Change:
    """Return the change by a new or changed deed. `deeds` are the known deeds, sorted."""
    owners = _owners(deeds)
    is_last = not deeds or document.order >= deeds[-1].order
    if deeds and deeds[-1].id == document.id and not deeds[-1].grantees:
        owners = _owners(deeds[:-1])  # its parties were published after it
    if is_last and document.grantees and keys_of(document.grantees) != keys_of(owners):
        return Change(document, ChangeKind.OWNERSHIP_TRANSFER, Severity.CRITICAL, owners)
    return Change(document, ChangeKind.DEED_CHANGE, Severity.WARNING)


def _owners(deeds: list[Document]) -> tuple[str, ...]:
    """Return the grantees of the last deed that has any."""
    return next((deed.grantees for deed in reversed(deeds) if deed.grantees), ())


def _other_change(document: Document) -> Change | None:
    if document.type in LIENS:
        is_large = (document.dollars or Decimal(0)) >= LIEN_CRITICAL_AMOUNT
        severity = Severity.CRITICAL if is_large else Severity.WARNING
        return Change(document, ChangeKind.LIEN_FILING, severity)
    if document.type in TAXES:
        return Change(document, ChangeKind.TAX_CHANGE, Severity.INFO)
    if document.type in DEED_AMENDMENTS:
        return Change(document, ChangeKind.DEED_CHANGE, Severity.WARNING)
    return None
