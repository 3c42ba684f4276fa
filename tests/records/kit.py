"""What the tests of records share."""

from datetime import UTC, datetime
from itertools import count
from typing import Any

from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile

from tailrace.db.clock import now
from tailrace.domains.records.depositions.receive import receive
from tailrace.domains.records.depositions.submit import Draft, harvested_identifier, submit
from tailrace.domains.records.models import Deposition, Record, Source

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
_numbers = count(1)


def metadata(title: str = "Snow depth at Vogel", **fields: Any) -> dict[str, Any]:
    """Return valid metadata."""
    return {"title": title, "creators": ["Novak, Ana"], "language": "en"} | fields


def source(name: str = "sample", **fields: Any) -> Source:
    """Return the source of this name, with fields changed."""
    defaults = {"kind": "oai_pmh", "url": "http://127.0.0.1:9/oai"} | fields
    return Source.objects.update_or_create(name=name, defaults=defaults)[0]


def draft(title: str = "Snow depth at Vogel", user: User | None = None, **fields: Any) -> Draft:
    """Return a valid deposition of a user."""
    values: dict[str, Any] = {
        "identifier": f"test-{next(_numbers)}",
        "datestamp": now(),
        "metadata": metadata(title),
        "submitted_by_id": user and user.pk,
    }
    return Draft(**values | fields)


def harvested(count: int, source: Source, **fields: Any) -> list[Draft]:
    """Return that many valid depositions of a source, with numbers in their titles."""
    return [
        draft(
            f"Measured series {number}",
            identifier=harvested_identifier(source.name, f"oai:{number}"),
            source_id=source.pk,
            source_identifier=f"oai:{number}",
            datestamp=LONG_AGO,
            **fields,
        )
        for number in range(count)
    ]


def deposit(
    title: str = "Snow depth at Vogel", user: User | None = None, **fields: Any
) -> Deposition:
    """Submit a valid deposition; return it."""
    [id] = submit([draft(title, user, **fields)])
    return Deposition.objects.get(pk=id)


def record(title: str = "Snow depth at Vogel", **fields: Any) -> Record:
    """Return a published record that no deposition brought, without index entries."""
    values: dict[str, Any] = {
        "identifier": f"test-{next(_numbers)}",
        "title": title,
        "creators": ["Novak, Ana"],
        "language": "en",
        "datestamp": LONG_AGO,
    }
    return Record.objects.create(**values | fields)


def fill_records(user: User, text: str = "Snow depth at Vogel") -> Record:
    """Store something of the user in every table of records; return their record."""
    file = SimpleUploadedFile("depths.csv", b"day,cm\n1,40\n", "text/csv")
    row = receive(user, metadata(text), [file]).deposition
    return record(text, owner=user, deposition=row, identifier=row.identifier)
