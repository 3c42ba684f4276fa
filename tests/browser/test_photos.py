"""Photos in a real browser: uploading, gatherings, and how the pages look."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tailrace.domains.photos.models import Photo
from tests.browser.screens import SCREENS, Scheme, look_at
from tests.photos.pictures import BERLIN, exif, make_gathering, make_photo, picture, recent

pytestmark = [pytest.mark.once, pytest.mark.slow, pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("storage_folder"),
]  # fmt: skip


@pytest.fixture
def ann(transactional_db: None) -> User:
    return User.objects.create_user("ann", "ann@example.org", password="a long password")


def _files(folder: Path, **files: bytes) -> list[str]:
    for name, content in files.items():
        (folder / f"{name}.jpg").write_bytes(content)
    return [str(folder / f"{name}.jpg") for name in files]


def test_chosen_pictures_are_uploaded_with_their_place(
    ann: User, visit: Callable[..., Page], tmp_path: Path, settings
) -> None:
    settings.PHOTOS_MAX_MEGABYTES = 1
    page = visit(ann, "/photos/upload")
    big = picture(size=(400, 300))
    files = _files(
        tmp_path,
        lake=picture(exif(*BERLIN, recent())),
        wood=picture(exif(*BERLIN, recent()), colour="darkgreen"),
        mute=picture(),
        diary=b"Dear diary, " * 100,
        huge=big + bytes(2_000_000),
    )
    page.locator("#files").set_input_files(files)
    lines = page.locator("#uploads > li")
    expect(lines).to_have_count(5)
    expect(page.locator("#summary")).to_have_text("2 of 5 stored, 1 incomplete, 2 failed.")
    for number in (0, 1):
        expect(lines.nth(number)).to_contain_text("from the picture) at 52.52000, 13.40500")
        expect(lines.nth(number).locator("img")).to_be_visible()
    expect(lines.nth(3)).to_contain_text("Not a supported picture; send JPEG")
    expect(lines.nth(4)).to_contain_text("The file is 2.0 MB; the limit is 1.0 MB.")

    mute = lines.nth(2)
    expect(mute).to_contain_text("The picture does not contain the location or time it was taken.")
    mute.get_by_label("Latitude").fill("200")
    mute.get_by_label("Longitude").fill("13,4")
    mute.get_by_label("Taken at").fill("2026-10-01T12:00:00")
    mute.get_by_role("button", name="Upload again").press("Enter")
    expect(mute).to_contain_text("less than or equal to 90")
    mute.get_by_label("Latitude").fill("52.5")
    mute.get_by_role("button", name="Upload again").press("Enter")
    expect(mute).to_contain_text("(as entered) at 52.50000, 13.40000 (as entered)")
    lines.nth(4).get_by_role("button", name="Remove huge.jpg").click()
    expect(page.locator("#summary")).to_have_text("3 of 4 stored, 1 failed.")
    assert Photo.objects.count() == 3

    page.get_by_role("link", name="My photos", exact=True).click()
    expect(page.locator(".ph-mine > li")).to_have_count(3)
    expect(page.locator(".ph-mine img").first).to_have_js_property("naturalWidth", 320)


def test_dropped_pictures_are_uploaded(ann: User, visit: Callable[..., Page]) -> None:
    page = visit(ann, "/photos/upload")
    content = list(picture(exif(*BERLIN, recent())))
    page.evaluate(
        """(content) => {
          const carried = new DataTransfer();
          carried.items.add(new File([new Uint8Array(content)], "a.jpg", { type: "image/jpeg" }));
          const drop = { dataTransfer: carried, bubbles: true, cancelable: true };
          document.dispatchEvent(new DragEvent("drop", drop));
        }""",
        content,
    )
    expect(page.locator("#summary")).to_have_text("1 of 1 stored.")
    assert Photo.objects.get().user == ann


def test_new_gatherings_appear_on_the_map(ann: User, visit: Callable[..., Page]) -> None:
    page = visit(ann, "/photos/")
    expect(page.locator("main")).to_contain_text("No active gatherings.")
    pins = page.locator("#map .ph-pin")
    expect(pins).to_have_count(0)
    gathering = make_gathering(ann, ann)
    expect(pins).to_have_count(1)
    expect(page.get_by_role("button", name="2 photos, active")).to_be_visible()
    expect(page.locator("#map canvas").first).to_be_attached()
    gathering.state, gathering.photo_count = "FINALIZED", 3
    gathering.save()
    pin = page.get_by_role("button", name="3 photos, FINALIZED")
    expect(pin).to_be_visible()
    pin.press("Enter")
    page.locator(".leaflet-popup a", has_text="3 photos").click()
    page.wait_for_url(re.compile(rf"/photos/gatherings/{gathering.pk}$"))
    expect(page.locator(".ph-grid img")).to_have_count(2)
    expect(page.locator(".ph-grid img").first).to_have_js_property("naturalWidth", 320)


COUNT_DASHED = """
window.dashed = 0;
const pen = CanvasRenderingContext2D.prototype, lineTo = pen.lineTo;
pen.lineTo = function (...point) {
  if (this.getLineDash().length) window.dashed += 1;
  lineTo.apply(this, point);
};
"""


def test_dashes_are_drawn_where_they_are_seen(ann: User, visit: Callable[..., Page]) -> None:
    """All dashes around the continent were drawn for each tile: a second of CPU for a map."""
    gathering = make_gathering(ann)
    page = visit(ann, "/photos/mine")
    page.add_init_script(COUNT_DASHED)
    page.goto(f"/photos/gatherings/{gathering.pk}")
    expect(page.locator("#map[data-base='2'] .ph-pin")).to_have_count(1)
    assert page.evaluate("window.dashed") < 1000


def test_tiles_come_from_the_configured_server(
    ann: User, visit: Callable[..., Page], settings, live_server
) -> None:
    settings.PHOTOS_TILES_URL = f"{live_server}/static/tailrace/jobs/icon.svg?{{z}}/{{x}}/{{y}}"
    settings.PHOTOS_TILES_CREDIT = "<b>nobody</b>"
    page = visit(ann, "/photos/")
    expect(page.locator("#map img.leaflet-tile-loaded").first).to_be_attached()
    expect(page.locator(".leaflet-control-attribution")).to_contain_text("<b>nobody</b>")


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_pages_fit_and_can_be_read(
    ann: User, visit: Callable[..., Page], tmp_path: Path, width: int, scheme: Scheme
) -> None:
    bob = User.objects.create_user("bob-with-a-name-that-is-rather-long")
    gathering = make_gathering(ann, bob, ann, ann, bob)
    make_gathering(ann, lat=52.5, lon=13.42)
    make_gathering(bob, bob, ann, state="FINALIZED", lat=52.49, lon=13.38)
    make_photo(ann, colour="tomato", caption="Word " * 40)
    make_photo(
        ann, state="unclusterable", next_try_at=None, given_up_at=recent(), cluster_attempts=4,
        reason="Fewer than 5 photos without a gathering within 75 m and 15 min",
    )  # fmt: skip
    page = visit(ann, "/photos/", width=width, scheme=scheme)
    expect(page.locator("#map .ph-pin")).to_have_count(3)
    look_at(page, "photos")
    page.goto(f"/photos/gatherings/{gathering.pk}")
    expect(page.locator("#map .ph-pin")).to_have_count(1)
    look_at(page, "photos-gathering")
    page.goto("/photos/mine")
    look_at(page, "photos-mine")
    page.goto("/photos/upload")
    files = _files(tmp_path, lake=picture(exif(*BERLIN, recent())), mute=picture(), diary=b"Dear")
    page.locator("#files").set_input_files(files)
    expect(page.locator("#summary")).to_have_text("1 of 3 stored, 1 incomplete, 1 failed.")
    look_at(page, "photos-upload")
