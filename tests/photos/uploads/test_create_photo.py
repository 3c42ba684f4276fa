"""Store a photo: the row and its event together, or neither."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from tailrace.db import clock as events_clock
from tailrace.domains.photos.event_types import GatheringFinalized
from tailrace.domains.photos.invariants import PhotosGather
from tailrace.domains.photos.models import Photo
from tailrace.domains.photos.uploads.create_photo import create_photo
from tailrace.domains.photos.uploads.validation import InvalidPhoto
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.models import Job
from tailrace.subscriptions.models import Notification
from tailrace.subscriptions.notifications.rendering import event_text
from tests import forks
from tests.kit import ROOT, at_once

GOOD = {"lat": 52.5, "lon": 13.4, "storage_key": "k", "caption": "us"}


def good(**changed):
    return GOOD | {"taken_at": events_clock.now()} | changed


@pytest.mark.django_db
def test_a_stored_photo_publishes_an_event() -> None:
    user = User.objects.create(username="ann")
    photo = create_photo(user, **good())
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
def test_a_rollback_leaves_no_photo_and_no_event() -> None:
    with transaction.atomic():
        create_photo(None, **good())
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
def test_an_invalid_field_is_rejected_by_name(field: str, value) -> None:
    with pytest.raises(InvalidPhoto, match=field) as refused:
        create_photo(None, **good(**{field: value}))
    assert refused.value.field == field
    assert not Photo.objects.exists()
    assert not Event.objects.exists()


@pytest.mark.django_db
def test_a_storage_key_belongs_to_one_photo() -> None:
    create_photo(None, **good())
    with pytest.raises(InvalidPhoto, match="'k' belongs to another photo"):
        create_photo(None, **good())
    assert Photo.objects.count() == Event.objects.count() == 1


@pytest.mark.django_db
def test_a_camera_may_be_a_time_zone_ahead() -> None:
    assert create_photo(None, **good(taken_at=events_clock.now() + timedelta(hours=14))).pk


UPLOAD = """
import django; django.setup()
from tailrace.domains.photos.uploads.create_photo import create_photo
from tailrace.db import clock
create_photo(None, lat=1, lon=2, taken_at=clock.now(), storage_key='away')
"""


def test_a_photo_is_stored_while_the_broker_is_away(process_env) -> None:
    done = forks.run(
        ["-c", UPLOAD],
        cwd=ROOT,
        env=process_env | {"BROKER_URL": "redis://127.0.0.1:1/0"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert Photo.objects.get().storage_key == "away"
    assert Job.objects.get(handler="photos.cluster").state == "pending"


@pytest.mark.django_db(transaction=True)
def test_photos_are_stored_and_clustered_while_a_sweep_hangs(run_jobs) -> None:
    """It holds its lock and the photos that it found; what comes later goes its way."""
    create_photo(None, **good(lat=10.0))

    def later(number: int) -> None:
        for n in range(5):
            create_photo(None, **good(storage_key=f"later/{n}"))
        run_jobs("photos.cluster")

    with transaction.atomic():
        assert len(PhotosGather().find()) == 1
        at_once(1, later)
        assert Photo.objects.filter(state="clustered").count() == 5


@pytest.mark.django_db(transaction=True)
def test_photographers_are_notified_of_their_gathering(run_jobs) -> None:
    ann, bob = (
        User.objects.create(username=name, email=f"{name}@x.org") for name in ("ann", "bob")
    )
    for n in range(5):
        create_photo(ann, **good(storage_key=f"g/{n}"))
    create_photo(bob, **good(lat=-10.0, storage_key="elsewhere"))
    run_jobs("photos.cluster", "subscriptions.notify")
    event = Event.objects.get(type="photos.gathering_started")
    notifications = Notification.objects.filter(event_id=event.pk)
    assert set(notifications.values_list("user__username", flat=True)) == {"ann"}
    (recorded,) = publish(
        NewEvent(GatheringFinalized, event.payload, source="test", source_id="told")
    )
    text = event_text.render_event(recorded)
    assert text.title == "The gathering near 52.500, 13.401 has ended with 5 photos"
    assert text.link.endswith(f"/photos/gatherings/{event.payload['gathering']}")
    assert text.link not in text.text, "each channel adds it"
