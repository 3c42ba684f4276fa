"""Attacks by the pins of photos on maps: they are of the user alone, bounded, and no HTML."""

from datetime import timedelta

import pytest
from django.test import Client

from tailrace.domains.photos.models import Photo
from tailrace.domains.photos.pages import pins
from tests.photos.pictures import make_gathering, make_photo, recent
from tests.subscriptions.sample_domain import person
from tests.web.visitor import Visitor

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("storage_folder")]
HERE = "/photos/mine/pins"
HTML = "<img src=x onerror=alert(1)>"


def period() -> dict[str, str]:
    at = recent()
    return {
        "start": (at - timedelta(days=1)).isoformat(),
        "end": (at + timedelta(days=1)).isoformat(),
    }


def test_photos_of_others_were_on_the_map() -> None:
    ann, bob = person("ann"), person("bob")
    make_photo(bob, caption="secret")
    make_gathering(bob)  # whose photos everybody may see, at a coarse place
    make_photo(ann, caption="mine")
    assert [pin["title"] for pin in Visitor(ann).get(HERE, **period()).json()] == ["mine"]
    root = person("root")
    root.is_superuser = root.is_staff = True
    root.save()
    assert Visitor(root).get(HERE, **period()).json() == []
    assert Client().get(HERE, period()).status_code == 302


def test_a_photo_of_another_time_was_on_the_map() -> None:
    ann = person("ann")
    make_photo(ann, at=recent() - timedelta(days=3))
    make_photo(ann, state="unplaced", lat=None, lon=None)
    assert Visitor(ann).get(HERE, **period()).json() == []


def test_pins_without_end_were_read(monkeypatch: pytest.MonkeyPatch) -> None:
    ann = person("ann")
    for _ in range(4):
        make_photo(ann)
    monkeypatch.setattr(pins, "MOST_PINS", 3)
    assert len(Visitor(ann).get(HERE, **period()).json()) == 3
    monkeypatch.setattr(pins, "MOST_READ", 2)
    assert len(Visitor(ann).get(HERE, **period()).json()) == 2


@pytest.mark.parametrize(
    "query",
    [
        {}, {"start": "x", "end": "y"}, {"start": "2026-02-30T00:00:00Z", "end": "x"},
        {"start": "2026-01-01T00:00:00", "end": "2026-01-02T00:00:00"},
        {"start": "0001-01-01T00:00:00+23:59", "end": "9"},
    ],
)  # fmt: skip
def test_an_odd_period_was_an_error_of_the_server(query: dict[str, str]) -> None:
    assert Visitor(person("ann")).get(HERE, **query).status_code == 404


def test_an_extreme_period_was_an_error_of_the_server() -> None:
    query = {"start": "0001-01-01T00:00:00+23:59", "end": "9999-12-31T23:59:59-23:59"}
    assert Visitor(person("ann")).get(HERE, **query).status_code == 404


def test_a_caption_brought_html_into_the_map() -> None:
    ann = person("ann")
    photo = make_photo(ann, caption=HTML)
    answer = Visitor(ann).get(HERE, **period())
    assert answer["Content-Type"] == "application/json"
    [pin] = answer.json()
    assert pin["title"] == HTML, "the script sets it as text"
    assert pin["picture"] == f"/photos/{photo.pk}/image"
    assert Photo.objects.count() == 1
