"""Where exactly a photo was taken: nobody but its owner learns it from what is shown.

Each test attacks as somebody who sees gatherings, and may add photos to them.
"""

import json
import random
import re
from io import BytesIO
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from PIL import Image, PngImagePlugin

from tailrace.domains.photos.clustering.shown_place import cell_centre, shown_place
from tailrace.domains.photos.exchange.kafka.message import Message
from tailrace.domains.photos.geometry import sphere
from tailrace.domains.photos.handlers.kafka import KafkaUpdates
from tailrace.domains.photos.invariants import ActiveGatheringsGrow, GatheringsAreTheirPhotos
from tailrace.domains.photos.models import Gathering, Photo
from tailrace.domains.photos.uploads.pictures.picture import read_picture
from tailrace.events.models import Event
from tailrace.events.publish import Recorded
from tailrace.subscriptions.notifications.rendering.event_text import render_event
from tests.photos.kit import SQUARE, Point, away, metres, upload_photo
from tests.photos.pictures import exif, picture, recent
from tests.subscriptions.sample_domain import person
from tests.web.program import allow, program
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db

CENTRE = cell_centre(*SQUARE, 100)
GATHERED = [away(CENTRE, 20, bearing) for bearing in (10, 100, 190, 280)]
HOMES = [away(CENTRE, 40, bearing) for bearing in (45, 225)]
"""Two points of one cell, 80 m apart."""
DAY = 24 * 60
PLACE = (52.51234567, 13.41234567)


def gathering_with(victim: Point, run_jobs, minutes: float = 0, own: Any = None) -> Gathering:
    """Let an attacker upload four photos, and someone else a fifth; return their gathering."""
    for number, point in enumerate(GATHERED):
        upload_photo(point, minutes + number / 100, user=own)
    photo = upload_photo(victim, minutes + 1)
    run_jobs("photos.cluster")
    photo.refresh_from_db()
    assert photo.gathering is not None
    return photo.gathering


def last_point(answer: dict[str, Any], own: list[Point]) -> Point:
    """Compute the point of the one photo that is not the attacker's, from a centroid."""
    centroid = sphere.unit_vector(answer["lat"], answer["lon"])
    known = zip(*(sphere.unit_vector(*point) for point in own), strict=True)
    count = len(own) + 1
    x, y, z = (count * all - sum(mine) for all, mine in zip(centroid, known, strict=True))
    return sphere.degrees((x, y, z))


def shown(gathering: Gathering, user: Any) -> dict[str, Any]:
    """Return every place of a gathering that a user is shown, by the way it is shown."""
    ann, visitor = program(f"reader{gathering.pk}{Event.objects.count()}"), Visitor(user)
    api = ann.get(f"/gatherings/{gathering.pk}").json()
    listed = next(row for row in ann.all("/gatherings") if row["id"] == gathering.pk)
    places = {}
    for path in ("/photos/", f"/photos/gatherings/{gathering.pk}"):
        page = visitor.get(path).content.decode()
        line = re.search(rf'<li data-gathering="{gathering.pk}".*?</li>', page, re.DOTALL)
        assert line
        places[path[:8]] = re.findall(r"data-l\w+=\S+|data-radius=\S+|near [^<]*", line[0])
    for row in Event.objects.filter(subject=f"gathering/{gathering.pk}").order_by("id"):
        event = Recorded.from_model(row)
        text = render_event(event)
        message = Message.of(event, "topic", KafkaUpdates().key(event))
        assert json.loads(message.value or b"") == row.payload
        numbers = [row.payload[name] for name in ("lat", "lon", "radius")]
        places[event.type] = [numbers, re.findall(r"near [-\d., ]+\d", text.title + text.text)]
    for name, answer in (("api", api), ("list", listed)):
        places[name] = [answer["lat"], answer["lon"], answer["radius"]]
    return places


def test_owners_of_all_other_photos_computed_the_last_photos_place(run_jobs) -> None:
    errors = []
    for number, home in enumerate(HOMES * 3):
        home = away(home, 10, 60 * number)
        gathering = gathering_with(home, run_jobs, minutes=-number * 60)
        answer = program(f"ann{number}").get(f"/gatherings/{gathering.pk}").json()
        errors.append(metres(last_point(answer, GATHERED), home))
    assert min(errors) > 20
    assert max(errors) > 40


def test_a_reader_told_two_places_of_one_cell_apart(run_jobs) -> None:
    here, there = (
        gathering_with(home, run_jobs, -90 * number) for number, home in enumerate(HOMES)
    )
    assert (here.lat, here.lon) != (there.lat, there.lon)
    ActiveGatheringsGrow().repair([here.pk, there.pk])
    reader = person("reader")
    assert here.pk != there.pk
    seen = shown(here, reader)
    assert seen == shown(there, reader)
    assert set(seen) >= {"api", "list", "/photos/", "photos.gathering_started"}


def test_the_end_of_a_gathering_told_two_places_of_one_cell_apart(run_jobs, clock) -> None:
    two = [gathering_with(home, run_jobs, -90 * number) for number, home in enumerate(HOMES)]
    clock.step(3 * 3600)
    ActiveGatheringsGrow().repair([gathering.pk for gathering in two])
    reader = person("reader")
    here, there = (shown(gathering, reader) for gathering in two)
    assert here == there
    assert "photos.gathering_finalized" in here


def test_an_observer_of_one_join_computed_the_place_of_who_joined(run_jobs) -> None:
    """Most photos are just west of a cell's border, and those that join just east of it."""
    next_cell = cell_centre(*away(CENTRE, 105, 90), 100)
    border = (CENTRE[0], (CENTRE[1] + next_cell[1]) / 2)
    west, east = away(border, 5, 270), away(border, 5, 90)
    photos = [upload_photo(point, 0) for point in (west, west, west, east, east)]
    run_jobs("photos.cluster")
    photos[0].refresh_from_db()
    gathering = photos[0].gathering
    assert (gathering.shown_lat, gathering.shown_lon) == CENTRE
    reader = person("reader")
    before = shown(gathering, reader)
    for number in range(2):
        joined = upload_photo(east, 2 + number)
        run_jobs("photos.cluster")
        joined.refresh_from_db()
        assert joined.gathering_id == gathering.pk
        assert shown(gathering, reader) == before
    upload_photo(east, 4)
    run_jobs("photos.cluster")
    gathering.refresh_from_db()
    assert (gathering.shown_lat, gathering.shown_lon) == next_cell, "three photos have joined"


def test_photos_added_one_by_one_pushed_a_gathering_until_its_cell_told_the_place(
    run_jobs,
) -> None:
    """The attacker moves the centroid with photos from several accounts, and looks each time."""
    users = [person(f"mallory{number}") for number in range(3)]
    tracks = []
    for number, home in enumerate(HOMES):
        start = -number * DAY
        gathering, track = gathering_with(home, run_jobs, start), []
        for step in range(20):
            to = away(CENTRE, 40 + 5 * step, 90)
            upload_photo(to, start + 2 + step / 10, user=users[step % 3])
            run_jobs("photos.cluster")
            gathering.refresh_from_db()
            track.append((gathering.photo_count, gathering.shown_lat, gathering.shown_lon))
        tracks.append(track)
    joins = [[count for count, _, _ in track] for track in tracks]
    assert joins[0] == joins[1], "both gatherings have let the same photos in"
    assert tracks[0] == tracks[1]
    assert len({(lat, lon) for _, lat, lon in tracks[0]}) > 1, "the shown place has moved"


def test_a_shown_place_depended_on_where_in_its_cell_a_photo_was_taken() -> None:
    """Whoever chooses all other points of a gathering, and however many."""
    chance = random.Random(11)
    for _ in range(300):
        centre = cell_centre(chance.uniform(-90, 90), chance.uniform(-180, 180), 100)
        others = [
            away(centre, chance.uniform(0, 150), chance.uniform(0, 360))
            for _ in range(chance.randint(1, 8))
        ]
        homes = [away(centre, chance.uniform(0, 48), chance.uniform(0, 360)) for _ in range(4)]
        assert len({shown_place([home, *others], 100) for home in homes}) == 1


@pytest.mark.parametrize("size", [100, 500, 5000])
def test_cells_near_a_pole_or_a_meridian_were_smaller(size: int) -> None:
    chance = random.Random(7)
    edges = [0.0, 89.9995, 89.99, 89.9, 89.0, 60.0, -45.0, -89.9985, -90.0, 90.0]
    points = [(lat, lon) for lat in edges for lon in (-180.0, -0.0001, 77.7, 179.99999, 180.0)]
    points += [(chance.uniform(-90, 90), chance.uniform(-180, 180)) for _ in range(300)]
    for point in points:
        centre = cell_centre(*point, size)
        for bearing in (0, 90, 180, 270):
            inside = away(centre, 0.485 * size, bearing)
            assert cell_centre(*inside, size) == centre, (point, centre, bearing)


def test_a_lone_photo_told_how_many_hidden_photos_are_around_it(run_jobs, clock) -> None:
    owner = person("owner")
    mine = [upload_photo(away(SQUARE, 5000 * number), user=owner) for number in (1, 2)]
    upload_photo(away(SQUARE, 5010))
    clock.step(3700)
    run_jobs("photos.cluster")
    reasons = {photo.reason for photo in Photo.objects.filter(user=owner)}
    assert Photo.objects.filter(user=owner, state="unclusterable").count() == len(mine)
    assert len(reasons) == 1


def test_staff_who_may_not_see_photos_saw_the_centroid(run_jobs) -> None:
    gathering = gathering_with(HOMES[0], run_jobs)
    exact = {f"{number}"[:8] for number in (gathering.lat, gathering.lon)}
    pages = ("changelist", []), ("change", [gathering.pk])
    for login, permissions, sees in (
        ("clerk", ["tailrace_photos.view_gathering"], False),
        ("chief", ["tailrace_photos.view_gathering", "tailrace_photos.view_photo"], True),
    ):
        staff = person(login)
        staff.is_staff = True
        staff.save()
        allow(staff, *permissions)
        client = Client()
        client.force_login(staff)
        text = "".join(
            words(client.get(reverse(f"admin:tailrace_photos_gathering_{page}", args=args)))
            for page, args in pages
        )
        assert f"{gathering.shown_lat:.3f}°" in text
        assert all(number in text for number in exact) == sees
        assert (f"{gathering.radius:.1f}" in text) == sees


def test_staff_who_may_see_payloads_read_places_in_events() -> None:
    photo = upload_photo(PLACE, user=person("owner"))
    rights = ("tailrace_events.view_event", "tailrace_events.view_payload")
    clerk = program("clerk", may=rights)
    chief = program("chief", may=(*rights, "tailrace_photos.view_photo"))
    owner = program("owner2", may=rights)
    Photo.objects.filter(pk=photo.pk).update(user=owner.user)
    event = Event.objects.get(type="photos.uploaded")
    for reader, status in ((clerk, 404), (chief, 200), (owner, 200)):
        answer = reader.get(f"/events/{event.pk}")
        assert answer.status_code == status
        assert (str(PLACE[0]) in answer.content.decode()) == (status == 200)
    photo.delete()
    assert owner.get(f"/events/{event.pk}").status_code == 404


def test_a_copy_of_a_picture_told_place_height_and_camera() -> None:
    tags = exif(*SQUARE, recent())
    gps = tags.get_ifd(0x8825)
    gps[5], gps[6] = 0, 34.5  # the altitude
    tags[0x010F], tags[0x0132] = "Spyglass", "2026:10:01 12:00:00"
    notes = PngImagePlugin.PngInfo()
    notes.add_text("Comment", "52.52, 13.405")
    notes.add_itxt("XML:com.adobe.xmp", "<x:xmpmeta>Spyglass</x:xmpmeta>")
    png = BytesIO()
    Image.new("RGB", (40, 30)).save(png, "PNG", exif=tags, pnginfo=notes, icc_profile=b"Spyglass")
    for file in (png.getvalue(), picture(tags)):
        copy = read_picture(BytesIO(file), recent().tzinfo, 64).copy  # type: ignore[arg-type]
        with Image.open(BytesIO(copy)) as image:
            assert not dict(image.getexif())
            assert set(image.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}
        for secret in (b"Spyglass", b"52.52", b"Exif", b"2026", b"xmp"):
            assert secret not in copy


def test_a_gathering_without_a_shown_place_showed_another(run_jobs) -> None:
    gathering = gathering_with(HOMES[0], run_jobs)
    place = (gathering.shown_lat, gathering.shown_lon, gathering.shown_radius)
    unplaced = {"shown_lat": None, "shown_lon": None, "shown_radius": None, "place_grid": None}
    Gathering.objects.update(**unplaced, placed_count=0)
    ann = program("ann")
    assert ann.get(f"/gatherings/{gathering.pk}").status_code == 404
    assert ann.all("/gatherings") == []
    invariant = GatheringsAreTheirPhotos()
    assert invariant.repair(invariant.find()) == 1
    answer = ann.get(f"/gatherings/{gathering.pk}").json()
    assert (answer["lat"], answer["lon"], answer["radius"]) == place
    assert invariant.find() == []


def test_a_coarser_grid_left_the_finer_places_shown(run_jobs, settings) -> None:
    gathering = gathering_with(HOMES[0], run_jobs)
    settings.PHOTOS_PLACE_GRID_M = 2000
    invariant = GatheringsAreTheirPhotos()
    assert invariant.repair(invariant.find()) == 1
    gathering.refresh_from_db()
    assert (gathering.shown_lat, gathering.shown_lon) == cell_centre(*SQUARE, 2000)
    assert gathering.shown_radius == 2000
    assert invariant.find() == []
