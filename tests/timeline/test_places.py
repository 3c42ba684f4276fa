"""Names of places: nearest towns, time zones, and what becomes of them with their import."""

import json
import sys
import time
from datetime import timedelta

import pytest

from tailrace.domains.timeline.imports import decisions
from tailrace.domains.timeline.imports.steps import enrich
from tailrace.domains.timeline.models import Place
from tailrace.domains.timeline.points import geocoding
from tests.subscriptions.sample_domain import person
from tests.timeline.kit import START, gpx, now, upload
from tests.web.visitor import Visitor


@pytest.mark.parametrize(
    ("lat", "lon", "name", "country", "zone"),
    [
        (52.40, 13.06, "Potsdam", "DE", "Europe/Berlin"),
        (-16.80, 179.99, "", "", "Pacific/Fiji"),
        (-18.13, 178.44, "Suva", "FJ", "Pacific/Fiji"),
        (64.14, -21.92, "Reykjavík", "IS", "Atlantic/Reykjavik"),
        (0.0, -30.0, "", "", "Etc/GMT+2"),
        (90.0, 0.0, "", "", "Etc/GMT"),
    ],
)
def test_a_place_has_the_name_of_the_nearest_town(lat, lon, name, country, zone) -> None:
    [place] = geocoding.name_places([(lat, lon)])
    assert (place.name, place.country, place.time_zone) == (name, country, zone)


def test_towns_are_found_as_by_looking_at_all() -> None:
    towns = [town for bucket in geocoding._buckets().values() for town in bucket]
    places = [(-88.0 + 3.7 * (n % 48), -180 + 7.3 * (n % 50)) for n in range(60)]
    near = [(52.3, 13.3), (35.6, 139.9), (69.7, 19.2), (78.1, 15.4), (-54.9, -68.2)]
    for (lat, lon), place in zip(places + near, geocoding.name_places(places + near), strict=True):
        x, y, z = geocoding._vector(lat, lon)
        cosine, name = max((x * t[0] + y * t[1] + z * t[2], t[3]) for t in towns)
        within = geocoding.math.acos(min(cosine, 1)) * geocoding.EARTH_RADIUS <= 25
        assert place.name == (name if within else ""), (lat, lon)


def test_the_file_of_towns_is_read_in_pieces_to_its_end() -> None:
    whole = json.loads(geocoding._towns_file().read_text("utf-8"))
    assert list(geocoding._towns()) == list(whole.values())


def test_many_places_are_named_in_a_moment() -> None:
    places = [(47 + n % 700 / 100, 6 + n % 900 / 100) for n in range(20_000)]
    list(geocoding.name_places(places[:1]))
    began = time.process_time()
    assert len(list(geocoding.name_places(places))) == 20_000
    assert time.process_time() - began < 10, "a bound for a busy machine"


@pytest.mark.django_db
def test_a_promoted_import_names_its_places(run_imports) -> None:
    ann, browser = person("ann"), Visitor(person("bob"))
    points = [(START + timedelta(minutes=n), 52.40 + n / 1e4, 13.06) for n in range(20)]
    row = upload(ann, gpx([*points, (START, -0.005, -30.0)]))
    run_imports()
    decisions.promote_now(row.pk)
    run_imports()
    assert now(row).state == "completed"
    rows = Place.objects.order_by("cell_lat").values_list("cell_lat", "cell_lon", "name")
    assert list(rows) == [(-1, -3000, ""), (5240, 1306, "Potsdam")]
    text = Visitor(ann).text("/timeline/days/2026-03-01")
    assert "Near Potsdam (DE)." in text
    assert "Potsdam" not in browser.text("/timeline/days/2026-03-01")
    decisions.undo(row.pk)
    assert "Potsdam" not in Visitor(ann).text("/timeline/days/2026-03-01")
    run_imports()
    assert not Place.objects.exists()


@pytest.mark.django_db
def test_places_are_looked_up_in_pieces_and_once(run_imports, monkeypatch) -> None:
    """As after a crash: some are saved already."""
    monkeypatch.setattr(enrich, "POINTS", 7)
    monkeypatch.setattr(enrich, "BATCH", 3)
    points = [(START + timedelta(hours=n * n), 52.40 + n % 9, 13.06) for n in range(40)]
    row = upload(person("ann"), gpx(points))
    run_imports()
    decisions.promote_now(row.pk)
    Place.objects.create(origin=row, cell_lat=5440, cell_lon=1306)
    run_imports()
    cells = Place.objects.filter(origin=row).order_by("cell_lat").values_list("cell_lat", flat=True)
    assert list(cells) == [5240 + 100 * n for n in range(9)]
    assert now(row).state == "completed"


@pytest.mark.django_db
def test_without_the_packages_an_import_is_completed(run_imports, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "tzfpy", None)
    row = upload(person("ann"), gpx([(START, 52.4, 13.06)]))
    run_imports()
    decisions.promote_now(row.pk)
    run_imports()
    assert (now(row).state, Place.objects.exists()) == ("completed", False)
