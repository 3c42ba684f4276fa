"""Delete the data of a user: depositions, files, records, and the payloads of their events."""

from django.db import transaction

from tailrace.domains.records.event_types import SOURCE
from tailrace.domains.records.models import Deposition, DepositionFile, Record
from tailrace.events.models import Event
from tailrace.events.privacy.erase import erase
from tailrace.jobs.enqueue import enqueue

BATCH = 200
"""Maximum number of rows that one transaction deletes."""
DELETE_FILES = "records.delete_files"


def delete_some_of(user_id: int) -> int:
    """Delete some records of the user, or some depositions if no record is left.

    Returns the number of deleted rows. A job deletes the files.
    """
    with transaction.atomic():
        return _delete_records(user_id) or _delete_depositions(user_id)


def _delete_records(user_id: int) -> int:
    ids = list(Record.objects.filter(owner=user_id).values_list("pk", flat=True)[:BATCH])
    _erase([f"record/{id}" for id in ids], "record")
    Record.objects.filter(pk__in=ids).delete()
    return len(ids)


def _delete_depositions(user_id: int) -> int:
    rows = Deposition.objects.filter(submitted_by=user_id)
    ids = list(rows.values_list("pk", flat=True)[:BATCH])
    keys = DepositionFile.objects.filter(deposition__in=ids).values_list("key", flat=True)
    if keys:
        enqueue(DELETE_FILES, {"keys": list(keys)})
    _erase([f"deposition/{id}" for id in ids], "deposition")
    Deposition.objects.filter(pk__in=ids).delete()
    return len(ids)


def _erase(subjects: list[str], keep: str) -> None:
    events = Event.objects.filter(subject__in=subjects, source=SOURCE)
    erase(SOURCE, list(events.values_list("source_id", flat=True)), keep=[keep])
