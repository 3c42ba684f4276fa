"""The pages of photos, as a browser without scripts sees them."""

import re
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from domains.photos.models import Photo
from tests.photos.scene import BERLIN, exif, gather, keep, noon, picture
from tests.subscriptions.browsing import HTMX, Visitor, words
from tests.subscriptions.stage import person

pytestmark = pytest.mark.django_db
PAGES = ("/photos/", "/photos/mine", "/photos/upload")


@pytest.fixture
def ann() -> Visitor:
    return Visitor(person("ann"))


def seen(answer) -> str:
    """Return the address by which the list asks for itself again."""
    return re.search(r'hx-get="([^"]+seen=[0-9a-f]{16})"', answer.content.decode())[1].replace(
        "&amp;", "&"
    )


@pytest.mark.parametrize("path", PAGES)
def test_each_page_keeps_the_policy(ann: Visitor, path: str) -> None:
    gather(ann.user)
    answer = ann.get(path)
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    assert "script-src 'self'" in answer["Content-Security-Policy"]
    text = answer.content.decode()
    assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=", text), "the policy"
    assert text.count('aria-current="page"') == 1
    assert re.search(r'aria-current="page">Photos<', text)
    assert text.count("<h1") == 1


@pytest.mark.parametrize("path", PAGES)
def test_every_file_of_a_page_is_ours_and_there(ann: Visitor, path: str) -> None:
    text = ann.get(path).content.decode()
    assert "http://" not in text
    assert "https://" not in text
    found = [
        one for one in re.findall(r'(?:src|href)="([^"]+)"', text) if one.startswith("/static")
    ]
    assert len(found) >= 6
    for address in found:
        assert ann.get(address).status_code == 200, address


def test_gatherings_stand_with_their_state_and_place(ann: Visitor) -> None:
    active = gather(ann.user, person("bob"))
    over = gather(ann.user, state="FINALIZED", lat=-33.86, lon=-70.5, at=noon() - timedelta(days=1))
    told = ann.told("/photos/")
    assert re.search(r"Active 2 photos, .* 52.52000° N, 13.40500° E · within 23 m ACTIVE", told)
    assert re.search(r"Final 1 photo, .* 33.86000° S, 70.50000° W · within 23 m FINALIZED", told)
    text = ann.get("/photos/").content.decode()
    assert f'data-gathering="{active.pk}" data-lat="52.52" data-lon="13.405"' in text
    page = words(ann.get(f"/photos/gatherings/{active.pk}"))
    assert "Nr. 0" in page
    assert "bob" in page
    assert ann.get(f"/photos/gatherings/{over.pk + 1}").status_code == 404


def test_the_list_comes_anew_only_when_it_changed(ann: Visitor) -> None:
    found = gather(ann.user)
    for path in ("/photos/", f"/photos/gatherings/{found.pk}", "/photos/mine"):
        again = seen(ann.get(path))
        assert ann.get(again, htmx=True).status_code == 204
        found.photos.update(caption=f"seen on {path}")
        found.photo_count += 1
        found.save()
        answer = ann.get(again, htmx=True)
        assert answer.status_code == 200
        assert seen(answer) != again
    assert Client().get("/photos/list", headers=HTMX)["HX-Refresh"] == "true"


def test_older_ones_are_a_page_on(ann: Visitor) -> None:
    for number in range(35):
        gather(state="FINALIZED", at=noon() - timedelta(days=number + 1))
    first = ann.get("/photos/").content.decode()
    older = re.search(r'rel="next" href="([^"]+)"', first)[1]
    second = ann.get(older).content.decode()
    both = [re.findall(r'data-gathering="(\d+)"', text) for text in (first, second)]
    assert [len(one) for one in both] == [30, 5]
    assert not set(both[0]) & set(both[1])
    assert ann.get("/photos/?after=x").status_code == 404


def test_my_photos_say_what_became_of_each(ann: Visitor) -> None:
    gather(ann.user)
    keep(ann.user)
    keep(
        ann.user, state="unclusterable", next_try_at=None, given_up_at=noon(),
        reason="it is the only photo", caption="The lone one",
    )  # fmt: skip
    keep(person("bob"), caption="Not mine")
    told = ann.told("/photos/mine")
    for said in ("in a gathering", "waits for others", "The lone one", "it is the only photo"):
        assert said in told
    assert "Not mine" not in told
    assert "None yet." in Visitor(person("eve")).told("/photos/mine")


def test_a_photo_is_shown_to_those_who_may_see_it(ann: Visitor) -> None:
    bob = Visitor(person("bob"))
    alone, together = keep(ann.user), gather(ann.user).photos.get()
    assert ann.get(f"/photos/{alone.pk}/image")["Content-Type"] == "image/jpeg"
    assert bob.get(f"/photos/{alone.pk}/image").status_code == 404
    assert bob.get(f"/photos/{together.pk}/image").status_code == 200
    assert "/login/" in Client().get(f"/photos/{together.pk}/image")["Location"]


def form(file: bytes | None = None, **fields: str) -> dict[str, object]:
    extra = {} if file is None else {"file": SimpleUploadedFile("a.jpg", file, "image/jpeg")}
    return {**fields, **extra}


def test_a_picture_goes_up_without_scripts(ann: Visitor) -> None:
    answer = ann.post("/photos/upload", form(picture(exif(*BERLIN, noon())), caption="x"))
    assert (answer.status_code, answer["Location"]) == (302, "/photos/mine")
    assert Photo.objects.get().caption == "x"
    assert "“a.jpg” is stored" in ann.told("/photos/mine")


def test_what_is_missing_is_asked_for(ann: Visitor) -> None:
    answer = ann.post("/photos/upload", form(picture()))
    assert answer.status_code == 422
    assert "the picture does not say it, so send it as lat" in words(answer)
    answer = ann.post("/photos/upload", form())
    assert (answer.status_code, "This field is required." in words(answer)) == (422, True)
    said = {"lat": "52.5", "lon": "13.4", "taken_at": "2026-10-01T12:00:00"}
    assert ann.post("/photos/upload", form(picture(), **said)).status_code == 302
    assert Photo.objects.get().lat == 52.5


def test_the_token_is_asked_for(ann: Visitor) -> None:
    file = form(picture(exif(*BERLIN, noon())))
    for path in ("/photos/upload", "/api/photos"):
        assert ann.client.post(path, file).status_code == 403
    assert not Photo.objects.exists()


def test_tiles_are_fetched_from_where_the_setting_says(ann: Visitor, settings) -> None:
    assert "img-src 'self' data:" in ann.get("/photos/")["Content-Security-Policy"]
    settings.PHOTOS_TILES_URL = "https://tiles.example.org/{z}/{x}/{y}.png"
    settings.PHOTOS_TILES_CREDIT = "© <those> who drew it"
    answer = ann.get("/photos/")
    assert "img-src 'self' https://tiles.example.org data:" in answer["Content-Security-Policy"]
    text = answer.content.decode()
    assert 'data-tiles="https://tiles.example.org/{z}/{x}/{y}.png"' in text
    assert 'data-credit="© &lt;those&gt; who drew it"' in text
    assert "tiles.example.org" not in ann.get("/photos/mine")["Content-Security-Policy"]
