"""A document of the public records, such as a deed or a mortgage, and what is read of a place."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from tailrace.domains.protection.properties.names import keys_of


@dataclass(frozen=True, slots=True)
class Document:
    """What the records say of one document. Texts are as the source writes them."""

    id: str
    type: str
    recorded: str = ""
    """When it was recorded, as `2026-10-01T00:00:00`; its order among others."""
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
        """The amount; None if it is none or no number."""
        try:
            amount = Decimal(self.amount)
        except InvalidOperation:
            return None
        return amount if amount.is_finite() else None

    def compared(self) -> dict[str, Any]:
        """Return what is compared: names normalised, and amounts as numbers."""
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
    """What a source answered for a place."""

    documents: Mapping[str, Document]
    complete: bool = True
    """False if the place has more documents than were wanted: these are the newest."""
    watermark: str = ""
    """Until when the source's records are complete, if it says so."""


def hash_of(documents: Mapping[str, Document]) -> str:
    """Return a hash that is equal if nothing that is compared has changed."""
    compared = [documents[id].compared() for id in sorted(documents)]
    return hashlib.sha256(json.dumps(compared, sort_keys=True).encode()).hexdigest()


def fingerprint(document: Document) -> str:
    return hash_of({document.id: document})
