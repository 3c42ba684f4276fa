"""Depositions are stored once per version, each with its event."""

from datetime import timedelta

import pytest
from django.db import transaction

from tailrace.domains.records.depositions.submit import submit
from tailrace.domains.records.models import Deposition
from tailrace.events.models import Event
from tests.records.kit import LONG_AGO, draft, harvested, source

pytestmark = pytest.mark.django_db


def test_each_version_is_stored_once_with_its_event() -> None:
    sample = source()
    drafts = harvested(3, sample)
    ids = submit(drafts)
    assert submit(drafts) == []
    later = harvested(1, sample, is_deleted=True)
    newer = submit(later)
    assert Deposition.objects.count() == 4
    events = Event.objects.filter(type="records.deposition_submitted").order_by("id")
    assert sorted(event.payload["deposition"] for event in events) == sorted(ids + newer)
    assert {event.subject for event in events} == {f"deposition/{id}" for id in ids + newer}


def test_another_datestamp_is_another_version() -> None:
    first = draft(identifier="a", datestamp=LONG_AGO)
    assert len(submit([first])) == 1
    assert len(submit([draft(identifier="a", datestamp=LONG_AGO + timedelta(days=1))])) == 1


def test_a_rollback_leaves_neither_deposition_nor_event() -> None:
    with transaction.atomic():
        submit([draft()])
        transaction.set_rollback(True)
    assert not Deposition.objects.exists()
    assert not Event.objects.filter(type="records.deposition_submitted").exists()


def test_characters_that_postgresql_cannot_store_are_replaced() -> None:
    [id] = submit([draft("a\0b\ud800")])
    assert Deposition.objects.get(pk=id).metadata["title"] == "a\ufffdb\ufffd"
