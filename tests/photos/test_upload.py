"""Storing a photo: the row and its event together, or nothing of either."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from domains.photos.event_types import GatheringFinalized
from domains.photos.invariants import PhotosGather
from domains.photos.models import Photo
from domains.photos.upload import InvalidPhoto, store
from events import clock as events_clock
from events.models import Event
from events.publish import NewEvent, publish
from jobs.models import Job
from subscriptions import story
from subscriptions.models import Notification
from tests.kit import ROOT, at_once

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


UPLOAD = """
import django; django.setup()
from domains.photos.upload import store
from events import clock
store(None, lat=1, lon=2, taken_at=clock.now(), storage_key='away')
"""


def test_a_photo_is_stored_while_the_broker_is_away(process_env) -> None:
    done = subprocess.run(
        [sys.executable, "-c", UPLOAD],
        cwd=ROOT,
        env=process_env | {"BROKER_URL": "redis://127.0.0.1:1/0"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert Photo.objects.get().storage_key == "away"
    assert Job.objects.get(handler="photos.cluster").state == "pending"


@pytest.mark.django_db(transaction=True)
def test_photos_are_stored_and_clustered_while_a_sweep_hangs(run_jobs) -> None:
    """It holds its lock and the photos that it found; what comes later goes its way."""
    store(None, **good(lat=10.0))

    def later(number: int) -> None:
        for n in range(5):
            store(None, **good(storage_key=f"later/{n}"))
        run_jobs("photos.cluster")

    with transaction.atomic():
        assert len(PhotosGather().find()) == 1
        at_once(1, later)
        assert Photo.objects.filter(state="clustered").count() == 5


@pytest.mark.django_db(transaction=True)
def test_photographers_hear_of_their_gathering(run_jobs) -> None:
    ann, bob = (
        User.objects.create(username=name, email=f"{name}@x.org") for name in ("ann", "bob")
    )
    for n in range(5):
        store(ann, **good(storage_key=f"g/{n}"))
    store(bob, **good(lat=-10.0, storage_key="elsewhere"))
    run_jobs("photos.cluster", "subscriptions.notify")
    event = Event.objects.get(type="photos.gathering_started")
    heard = Notification.objects.filter(event_id=event.pk)
    assert set(heard.values_list("user__username", flat=True)) == {"ann"}
    (recorded,) = publish(
        NewEvent(GatheringFinalized, event.payload, source="test", source_id="told")
    )
    told = story.tell(recorded)
    assert told.title == "The gathering near 52.5000, 13.4000 has ended with 5 photos"
    assert told.link.endswith(f"/photos/gatherings/{event.payload['gathering']}")
    assert told.link in told.text
