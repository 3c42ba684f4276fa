"""Objects of a user in this domain, for tests that request every address."""

from typing import Any

from django.contrib.auth.models import User

from tests.records.kit import fill_records, source


def owned_objects(owner: User) -> dict[str, Any]:
    record = fill_records(owner)
    deposition = record.deposition
    assert deposition is not None
    return {
        "records": record.pk,
        "record": record.pk,
        "depositions": deposition.pk,
        "deposition": deposition.pk,
        "files": deposition.files.get().pk,
        "indexes": "keyword",
        "source": source().pk,
        "sources": source().pk,
    }
