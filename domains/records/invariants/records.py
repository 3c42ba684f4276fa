"""The invariants of depositions and published records."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet, TextField, Value
from django.db.models.functions import Cast, Concat

from tailrace.db.query import database_now
from tailrace.domains.records.depositions.events import publish_about
from tailrace.domains.records.event_types import SOURCE, DepositionSubmitted
from tailrace.domains.records.models import Deposition, KeywordEntry, Record, VectorEntry
from tailrace.domains.records.search.indexing.backends import backends
from tailrace.events.models import Event
from tailrace.jobs.maintenance.invariant import Invariant

SETTLED = timedelta(minutes=10)
"""The age from which on rows should have been processed."""
RECENT = timedelta(days=1)


class DepositionsHaveAnEvent(Invariant):
    """Each submitted deposition has an event, whose jobs process the deposition.

    Repaired: the event is published.
    """

    name = "records.depositions_have_an_event"
    every = 300

    def find(self) -> Sequence[Any]:
        until = database_now() - SETTLED
        rows = Deposition.objects.unfinished().filter(state="submitted", submitted_at__lt=until)
        return list(_without_event(rows).values_list("pk", flat=True)[: self.limit])

    def repair(self, violations: Sequence[Any]) -> int:
        publish_about(DepositionSubmitted, violations)
        return len(violations)


class WithdrawnAreNotIndexed(Invariant):
    """Withdrawn records are in no index.

    Repaired: the records are removed from all indexes.
    """

    name = "records.withdrawn_are_not_indexed"
    every = 300

    def find(self) -> Sequence[Any]:
        now = database_now()
        rows = Record.objects.filter(is_deleted=True, published_at__lt=now - SETTLED)
        recent = rows.filter(published_at__gt=now - RECENT).order_by("-published_at", "-pk")
        indexed = recent.filter(Exists(_keyword_entries()) | Exists(_vector_entries()))
        return list(indexed.values_list("pk", flat=True)[: self.limit])

    def repair(self, violations: Sequence[Any]) -> int:
        for backend in backends().values():
            backend.remove(violations)
        return len(violations)


class PublishedAreIndexed(Invariant):
    """Published records are in the keyword index and the vector index. The check reads all records,
    so only `fsck` runs it.

    Repaired: the records are indexed.
    """

    name = "records.published_are_indexed"
    every = None

    def find(self) -> Sequence[Any]:
        rows = Record.objects.current().filter(published_at__lt=database_now() - SETTLED)
        unindexed = rows.filter(~Exists(_keyword_entries()) | ~Exists(_vector_entries()))
        return list(unindexed.order_by("pk").values_list("pk", flat=True)[: self.limit])

    def repair(self, violations: Sequence[Any]) -> int:
        records = list(Record.objects.current().filter(pk__in=violations))
        for backend in backends().values():
            backend.index(records)
        return len(records)


def _without_event(rows: QuerySet[Deposition]) -> QuerySet[Deposition]:
    number = Cast(OuterRef("pk"), TextField())
    name = Concat(Value("deposition/"), number, Value("/submitted"), output_field=TextField())
    return rows.filter(~Exists(Event.objects.filter(source=SOURCE, source_id=name)))


def _keyword_entries() -> QuerySet[KeywordEntry]:
    return KeywordEntry.objects.filter(record=OuterRef("pk"))


def _vector_entries() -> QuerySet[VectorEntry]:
    return VectorEntry.objects.filter(record=OuterRef("pk"))
