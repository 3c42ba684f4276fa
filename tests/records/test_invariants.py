"""What must be true of depositions and records is found where it is not, and repaired."""

from datetime import timedelta

import pytest

from tailrace.domains.records.invariants import (
    DepositionsHaveAnEvent,
    PublishedAreIndexed,
    WithdrawnAreNotIndexed,
)
from tailrace.domains.records.models import Deposition, KeywordEntry, Record, VectorEntry
from tailrace.events.models import Event
from tailrace.jobs.runtime.invariant import Invariant
from tests.records.kit import LONG_AGO, deposit, record
from tests.records.test_chain import CHAIN

pytestmark = pytest.mark.django_db


def repaired(invariant: type[Invariant]) -> list[int]:
    """Return what was found; afterwards nothing is."""
    violations = invariant().find()
    invariant().repair(violations)
    assert list(invariant().find()) == []
    return list(violations)


def test_a_deposition_without_an_event_gets_one(run_jobs) -> None:
    sound, lost = deposit("sound"), deposit("lost")
    Event.objects.filter(subject=f"deposition/{lost.pk}").delete()
    assert list(DepositionsHaveAnEvent().find()) == [], "it may just have been submitted"
    Deposition.objects.update(submitted_at=LONG_AGO)
    assert repaired(DepositionsHaveAnEvent) == [lost.pk]
    run_jobs(*CHAIN)
    assert set(Deposition.objects.values_list("state", flat=True)) == {"published"}
    assert sound.pk != lost.pk


def test_a_withdrawn_record_that_is_indexed_is_removed(run_jobs, clock) -> None:
    deposit()
    run_jobs(*CHAIN)
    Record.objects.update(is_deleted=True)
    clock.step(timedelta(minutes=11).total_seconds())
    assert repaired(WithdrawnAreNotIndexed) == [Record.objects.get().pk]
    assert not KeywordEntry.objects.exists()
    assert not VectorEntry.objects.exists()


def test_a_published_record_without_entries_is_indexed() -> None:
    row = record(published_at=LONG_AGO)
    record("withdrawn", published_at=LONG_AGO, is_deleted=True)
    assert repaired(PublishedAreIndexed) == [row.pk]
    assert KeywordEntry.objects.get().record_id == VectorEntry.objects.get().record_id == row.pk
