"""Attacks: the places of photos come from their owner's points alone, and tell nobody else."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from tailrace.domains.photos.models import Photo
from tailrace.events.models import Event
from tailrace.events.privacy.visibility import readers_of
from tailrace.events.publish import NewEvent, Recorded, publish
from tailrace.jobs.models import Job
from tests.across.kit import PLACES, add_points, minutes, send_points, upload_unplaced
from tests.photos.pictures import recent
from tests.web.program import Program, program

pytestmark = pytest.mark.django_db
LAKE = (46.28, 13.88)


@pytest.fixture(autouse=True)
def _folders(storage_folder, import_folder) -> None:
    """Pictures and imported files of this test."""


@pytest.fixture
def ana() -> Program:
    return program("ana", "photos:read", "photos:write", "timeline:points", "events:write")


@pytest.fixture
def eve() -> Program:
    return program("eve", "photos:read", "photos:write", "timeline:points", "events:write")


def test_points_of_another_user_give_no_photo_a_place(
    ana: Program, eve: Program, run_jobs: Callable[..., int]
) -> None:
    at = recent()
    photo = upload_unplaced(ana, at)
    send_points(eve, [(at, *LAKE)])
    run_jobs(*PLACES)
    photo.refresh_from_db()
    assert photo.state == "unplaced"


def test_an_answer_for_one_user_places_no_photo_of_another(
    ana: Program, eve: Program, run_jobs: Callable[..., int]
) -> None:
    photo = upload_unplaced(ana, recent())
    places = [{"photo": photo.pk, "lat": 1.0, "lon": 2.0}]
    publish(NewEvent("timeline.places_known", {"user_id": eve.user.pk, "places": places}))
    run_jobs(*PLACES)
    photo.refresh_from_db()
    assert (photo.state, photo.lat) == ("unplaced", None)


def test_a_request_for_anothers_photo_is_answered_by_ones_own_points(
    ana: Program, eve: Program, run_jobs: Callable[..., int]
) -> None:
    at = recent()
    add_points(ana.user, [(at, *LAKE)])
    photo = upload_unplaced(ana, at + minutes(600))
    photos = [{"photo": photo.pk, "taken_at": at}]
    request = {"user_id": eve.user.pk, "photos": photos, "within_seconds": 10**9}
    publish(NewEvent("photos.places_requested", request))
    run_jobs(*PLACES)
    assert not Event.objects.filter(type="timeline.places_known").exists()


@pytest.mark.parametrize("name", ["photos.places_requested", "timeline.places_known"])
def test_the_api_records_none_of_these_events(eve: Program, ana: Program, name: str) -> None:
    body = {"type": name, "payload": {"user_id": ana.user.pk}}
    answer = eve.client.post("/api/events", body, content_type="application/json")
    assert answer.status_code in (400, 403, 422), answer.content
    assert not Event.objects.filter(type=name).exists()


def test_the_owner_alone_may_read_them(
    ana: Program, eve: Program, run_jobs: Callable[..., int]
) -> None:
    at = recent()
    add_points(ana.user, [(at, *LAKE)])
    upload_unplaced(ana, at)
    run_jobs("timeline.look_up_places")
    events = list(
        Event.objects.filter(type__in=["photos.places_requested", "timeline.places_known"])
    )
    assert len(events) == 2
    for readers in readers_of(map(Recorded.from_model, events)).values():
        assert (readers.users, readers.groups) == ({"ana"}, frozenset())
    handlers = set(Job.objects.filter(event__in=events).values_list("handler", flat=True))
    assert handlers == {"timeline.look_up_places", "photos.place_photos"}
    for event in events:
        assert eve.client.get(f"/api/events/{event.pk}").status_code in (403, 404)


def test_an_unplaced_photo_is_its_owners_alone(ana: Program, eve: Program) -> None:
    photo = upload_unplaced(ana, recent())
    assert eve.client.get(f"/api/photos/{photo.pk}").status_code == 404
    assert eve.client.get(f"/api/photos/{photo.pk}/image").status_code == 404
    assert Photo.objects.get().user == User.objects.get(username="ana")
