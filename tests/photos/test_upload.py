"""Storing a photo: the row and its event together, or nothing of either."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from domains.photos.models import Photo
from domains.photos.upload import InvalidPhoto, store
from events import clock as events_clock
from events.models import Event

GOOD = {"lat": 52.5, "lon": 13.4, "storage_key": "k", "caption": "us"}


def good(**changed):
    return GOOD | {"taken_at": events_clock.now()} | changed


@pytest.mark.django_db
def test_a_photo_is_stored_and_said() -> None:
    user = User.objects.create(username="ann")
    photo = store(user, **good())
    assert (photo.state, photo.cluster_attempts, photo.gathering_id) == ("new", 0, None)
    event = Event.objects.get()
    assert (event.type, event.subject, event.actor) == (
        "photos.uploaded",
        f"photo/{photo.pk}",
        "ann",
    )
    assert event.payload == {
        "photo": photo.pk,
        "lat": 52.5,
        "lon": 13.4,
        "taken_at": event.payload["taken_at"],
        "storage_key": "k",
    }
    assert datetime.fromisoformat(event.payload["taken_at"]) == photo.taken_at


@pytest.mark.django_db(transaction=True)
def test_a_rolled_back_upload_leaves_neither() -> None:
    with transaction.atomic():
        store(None, **good())
        transaction.set_rollback(True)
    assert not Photo.objects.exists()
    assert not Event.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("lat", 90.1), ("lat", float("nan")), ("lat", None), ("lat", True), ("lon", -180.5),
        ("lon", float("inf")), ("lon", "13"), ("taken_at", datetime(1970, 1, 1, tzinfo=UTC)),
        ("taken_at", datetime(2026, 1, 1)), ("taken_at", datetime(2999, 1, 1, tzinfo=UTC)),
        ("taken_at", "now"), ("storage_key", ""), ("storage_key", "x" * 501),
        ("caption", "x" * 2001), ("caption", "a\0b"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_name(field: str, value) -> None:
    with pytest.raises(InvalidPhoto, match=field) as refused:
        store(None, **good(**{field: value}))
    assert refused.value.field == field
    assert not Photo.objects.exists()
    assert not Event.objects.exists()


@pytest.mark.django_db
def test_a_storage_key_is_taken_once() -> None:
    store(None, **good())
    with pytest.raises(InvalidPhoto, match="'k' is taken by another photo"):
        store(None, **good())
    assert Photo.objects.count() == Event.objects.count() == 1


@pytest.mark.django_db
def test_a_camera_may_be_a_time_zone_ahead() -> None:
    assert store(None, **good(taken_at=events_clock.now() + timedelta(hours=14))).pk
