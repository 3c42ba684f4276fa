"""The pages of photos, as a browser without scripts sees them."""

import re
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tailrace.domains.photos.models import Photo
from tests.photos.pictures import BERLIN, exif, make_gathering, make_photo, picture, recent
from tests.subscriptions.sample_domain import person
from tests.web.visitor import HTMX, Visitor, words

pytestmark = pytest.mark.django_db
PAGES = ("/photos/", "/photos/mine", "/photos/upload")


@pytest.fixture
def ann() -> Visitor:
    return Visitor(person("ann"))


def address_of_list(answer) -> str:
    """Return the address from which the list reloads itself."""
    return re.search(r'hx-get="([^"]+version=[0-9a-f]{16})"', answer.content.decode())[1].replace(
        "&amp;", "&"
    )


@pytest.mark.parametrize("path", PAGES)
def test_each_page_follows_the_content_security_policy(ann: Visitor, path: str) -> None:
    make_gathering(ann.user)
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
def test_pages_load_only_existing_local_files(ann: Visitor, path: str) -> None:
    text = ann.get(path).content.decode()
    assert "http://" not in text
    assert "https://" not in text
    addresses = [
        address
        for address in re.findall(r'(?:src|href)="([^"]+)"', text)
        if address.startswith("/static")
    ]
    assert len(addresses) >= 6
    for address in addresses:
        assert ann.get(address).status_code == 200, address


def test_gatherings_are_listed_with_state_and_place(ann: Visitor) -> None:
    active = make_gathering(ann.user, person("bob"))
    over = make_gathering(
        ann.user, state="FINALIZED", lat=-33.86, lon=-70.5, at=recent() - timedelta(days=1)
    )
    text = ann.text("/photos/")
    assert re.search(
        r"Active 2 photos, .* near 52.520° N, 13.405° E, within about 100 m active", text
    )
    assert re.search(
        r"Finalized 1 photo, .* near 33.860° S, 70.50\d° W, within about 100 m finalized", text
    )
    text = ann.get("/photos/").content.decode()
    assert (
        f'data-gathering="{active.pk}" data-lat="{active.shown_lat}" data-lon="{active.shown_lon}"'
        in text
    )
    page = words(ann.get(f"/photos/gatherings/{active.pk}"))
    assert "Nr. 0" in page
    assert "bob" in page
    assert ann.get(f"/photos/gatherings/{over.pk + 1}").status_code == 404


def test_a_list_is_sent_again_only_when_it_changed(ann: Visitor) -> None:
    gathering = make_gathering(ann.user)
    for path in ("/photos/", f"/photos/gatherings/{gathering.pk}", "/photos/mine"):
        again = address_of_list(ann.get(path))
        assert ann.get(again, htmx=True).status_code == 204
        gathering.photos.update(caption=f"seen on {path}")
        gathering.photo_count += 1
        gathering.save()
        answer = ann.get(again, htmx=True)
        assert answer.status_code == 200
        assert address_of_list(answer) != again
    assert Client().get("/photos/list", headers=HTMX)["HX-Refresh"] == "true"


def test_older_gatherings_are_on_the_next_page(ann: Visitor) -> None:
    for number in range(35):
        make_gathering(state="FINALIZED", at=recent() - timedelta(days=number + 1))
    first = ann.get("/photos/").content.decode()
    older = re.search(r'rel="next" href="([^"]+)"', first)[1]
    second = ann.get(older).content.decode()
    both = [re.findall(r'data-gathering="(\d+)"', text) for text in (first, second)]
    assert [len(ids) for ids in both] == [30, 5]
    assert not set(both[0]) & set(both[1])
    assert ann.get("/photos/?after=x").status_code == 404


def test_my_photos_show_each_photos_state(ann: Visitor) -> None:
    make_gathering(ann.user)
    make_photo(ann.user)
    make_photo(
        ann.user, state="unclusterable", next_try_at=None, given_up_at=recent(),
        reason="Only 1 photo", caption="The lone one",
    )  # fmt: skip
    make_photo(person("bob"), caption="Not mine")
    text = ann.text("/photos/mine")
    for sentence in ("in a gathering", "waiting", "The lone one", "Only 1 photo"):
        assert sentence in text
    assert "Not mine" not in text
    assert "No photos yet." in Visitor(person("eve")).text("/photos/mine")


def test_a_picture_is_shown_to_users_who_may_see_it(ann: Visitor) -> None:
    bob = Visitor(person("bob"))
    alone, together = make_photo(ann.user), make_gathering(ann.user).photos.get()
    assert ann.get(f"/photos/{alone.pk}/image")["Content-Type"] == "image/jpeg"
    assert bob.get(f"/photos/{alone.pk}/image").status_code == 404
    assert bob.get(f"/photos/{together.pk}/image").status_code == 200
    assert "/login/" in Client().get(f"/photos/{together.pk}/image")["Location"]


def form(file: bytes | None = None, **fields: str) -> dict[str, object]:
    extra = {} if file is None else {"file": SimpleUploadedFile("a.jpg", file, "image/jpeg")}
    return {**fields, **extra}


def test_a_picture_is_uploaded_without_scripts(ann: Visitor) -> None:
    answer = ann.post("/photos/upload", form(picture(exif(*BERLIN, recent())), caption="x"))
    assert (answer.status_code, answer["Location"]) == (302, "/photos/mine")
    assert Photo.objects.get().caption == "x"
    assert "“a.jpg” was stored" in ann.text("/photos/mine")


def test_the_form_names_missing_fields(ann: Visitor) -> None:
    answer = ann.post("/photos/upload", form(picture()))
    assert answer.status_code == 422
    assert "Not in the picture's EXIF; send lat" in words(answer)
    answer = ann.post("/photos/upload", form())
    assert (answer.status_code, "This field is required." in words(answer)) == (422, True)
    fields = {"lat": "52.5", "lon": "13.4", "taken_at": "2026-10-01T12:00:00"}
    assert ann.post("/photos/upload", form(picture(), **fields)).status_code == 302
    assert Photo.objects.get().lat == 52.5


def test_uploads_need_the_csrf_token(ann: Visitor) -> None:
    file = form(picture(exif(*BERLIN, recent())))
    for path in ("/photos/upload", "/api/photos"):
        assert ann.client.post(path, file).status_code == 403
    assert not Photo.objects.exists()


def test_the_policy_allows_the_tile_server(ann: Visitor, settings) -> None:
    assert "img-src 'self' data:" in ann.get("/photos/")["Content-Security-Policy"]
    settings.PHOTOS_TILES_URL = "https://tiles.example.org/{z}/{x}/{y}.png"
    settings.PHOTOS_TILES_CREDIT = "© <those> who drew it"
    answer = ann.get("/photos/")
    assert "img-src 'self' https://tiles.example.org data:" in answer["Content-Security-Policy"]
    text = answer.content.decode()
    assert 'data-tiles="https://tiles.example.org/{z}/{x}/{y}.png"' in text
    assert 'data-credit="© &lt;those&gt; who drew it"' in text
    assert "tiles.example.org" not in ann.get("/photos/mine")["Content-Security-Policy"]
