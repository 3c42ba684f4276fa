"""A document of the public records, such as a deed or a mortgage, and a reading of all documents of
a place."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from tailrace.domains.protection.services.properties.names import keys_of


@dataclass(frozen=True, slots=True)
class Document:
    """The data of a document. Texts are in the source's spelling."""

    id: str
    type: str
    recorded: str = ""
    """When it was recorded, such as `2026-10-01T00:00:00`. Documents are sorted by it."""
    dated: str = ""
    amount: str = ""
    """In dollars; empty if there is none."""
    grantors: tuple[str, ...] = ()
    grantees: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[str, str]:
        return self.recorded, self.id

    @property
    def dollars(self) -> Decimal | None:
        """The amount; None if it is empty or not a number."""
        try:
            amount = Decimal(self.amount)
        except InvalidOperation:
            return None
        return amount if amount.is_finite() else None

    def compared(self) -> dict[str, Any]:
        """Return the values for a comparison: normalised names, and amounts as numbers."""
        amount = self.dollars
        return {
            **asdict(self),
            "amount": "" if amount is None else f"{amount:.2f}",
            "grantors": keys_of(self.grantors),
            "grantees": keys_of(self.grantees),
        }

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value and name != "id"}

    @classmethod
    def from_json(cls, id: str, fields: Mapping[str, Any]) -> "Document":
        names = {name: tuple(fields.get(name, ())) for name in ("grantors", "grantees")}
        return cls(**{"type": "", **fields, **names, "id": id})


@dataclass(frozen=True, slots=True)
class Reading:
    documents: Mapping[str, Document]
    complete: bool = True
    """False if the place has more documents than requested; then these are the newest."""
    watermark: str = ""
    """The date up to which the source's records are complete, if the source names it."""


def hash_of(documents: Mapping[str, Document]) -> str:
    """Return a hash that changes only if a compared value changes."""
    compared = [documents[id].compared() for id in sorted(documents)]
    return hashlib.sha256(json.dumps(compared, sort_keys=True).encode()).hexdigest()


def fingerprint(document: Document) -> str:
    return hash_of({document.id: document})
