"""Imports in a real browser: a file is uploaded, looked at, cancelled or promoted."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tailrace.domains.timeline.live.receive import store
from tailrace.domains.timeline.models import Import
from tests.browser.axe import findings
from tests.browser.screens import SCREENS, Scheme, look_at
from tests.timeline.kit import gpx, stored, track
from tests.timeline.test_device_tags import records

pytestmark = [pytest.mark.once, pytest.mark.slow, pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("import_folder"),
]  # fmt: skip
BLACK_TILES = """
() => [...document.querySelectorAll(".tr-map canvas")].filter((tile) => {
  const pixels = tile.getContext("2d").getImageData(0, 0, tile.width, tile.height).data;
  return pixels.every((value, at) => at % 4 === 3 || value === 0);
}).length
"""


@pytest.fixture
def ann(transactional_db: None) -> User:
    return User.objects.create_user("ann", "ann@example.org", password="a long password")


def _choose(page: Page, folder: Path) -> None:
    path = folder / "walk.gpx"
    path.write_bytes(gpx([*track(400), (None, 1.0, 2.0)]))
    page.goto("/timeline/imports")
    page.locator("input[type=file]").set_input_files(path)
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator("main")).to_contain_text("The file is waiting to be parsed.")


def test_a_file_is_uploaded_and_cancelled_in_its_grace(
    ann: User, visit: Callable[..., Page], tmp_path: Path, run_jobs
) -> None:
    page = visit(ann, "/timeline/imports")
    _choose(page, tmp_path)
    run_jobs("timeline.stage")
    expect(page.locator("main")).to_contain_text("400 points ready")
    expect(page.locator("#map[data-drawn='400']")).to_be_visible()
    page.get_by_text("1 rejected point").click()
    expect(page.locator("#rejected table")).to_contain_text("no time")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("main")).to_contain_text("No points of this file are in your timeline.")
    expect(page.locator("#map")).to_be_hidden()
    run_jobs("timeline.discard")
    assert (Import.objects.get().state, stored(ann)) == ("cancelled", [])


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_a_file_is_uploaded_and_promoted(
    ann: User, visit: Callable[..., Page], tmp_path: Path, run_jobs, width: int, scheme: Scheme
) -> None:
    page = visit(ann, "/timeline/imports", width=width, scheme=scheme)
    look_at(page, "imports-none")
    _choose(page, tmp_path)
    run_jobs("timeline.stage")
    expect(page.locator("main")).to_contain_text("400 points ready")
    expect(page.locator("#map[data-drawn]")).to_be_visible()
    page.get_by_text("1 rejected point").click()
    look_at(page, "import-grace")
    page.goto("/timeline/imports")
    expect(page.locator("main")).to_contain_text("promotes in")
    look_at(page, "imports")
    page.get_by_role("link", name="walk.gpx").click()
    page.get_by_role("button", name="Promote now").click()
    run_jobs("timeline.promote", "timeline.enrich", "timeline.discard")
    expect(page.locator("main")).to_contain_text("400 new, 0 duplicates, 1 rejected")
    expect(page.locator("#map[data-drawn='400']")).to_be_visible()
    look_at(page, "import-completed")
    page.goto("/timeline/?month=2026-03")
    expect(page.locator("#map[data-drawn]")).to_be_visible()
    assert findings(page) == []
    look_at(page, "days")
    page.locator("#calendar a").click()
    expect(page.locator("#map[data-drawn='400'][data-base='2']")).to_be_visible()
    expect(page.locator("#stretches")).to_contain_text("Europe/Berlin")
    assert page.evaluate(BLACK_TILES) == 0, "the base map has the colours of the page"
    assert findings(page) == []
    look_at(page, "day")
    page.goto("/timeline/imports")
    page.get_by_role("link", name="Undo walk.gpx").click()
    expect(page.locator("main")).to_contain_text("400 points of 1 day will be removed")
    look_at(page, "undo")
    page.get_by_role("button", name="Undo the import").click()
    run_jobs("timeline.undo", "timeline.discard")
    expect(page.locator("main")).to_contain_text("400 points removed from your timeline.")
    assert stored(ann) == []


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        pytest.param(1440, "light", marks=pytest.mark.long),
        pytest.param(1440, "dark", marks=pytest.mark.long),
        pytest.param(390, "dark", marks=pytest.mark.long),
        (390, "light"),
    ],
)
def test_devices_are_renamed_merged_and_deleted(
    ann: User, visit: Callable[..., Page], run_jobs, width: int, scheme: Scheme
) -> None:
    for number, name in enumerate(("a7", "tablet", "watch", "an old phone " * 7)):
        point = (1_772_352_000_000_000 + number, 134_000_000, 525_000_000, None, None, None, None)
        store(ann, name, [point])
    page = visit(ann, "/timeline/devices", width=width, scheme=scheme)
    look_at(page, f"devices-{width}-{scheme}")
    page.get_by_role("link", name="Change a7").click()
    page.get_by_label("Name", exact=True).fill("tablet")
    page.get_by_role("button", name="Rename").click()
    expect(page.locator("main")).to_contain_text("merge the two instead")
    look_at(page, f"device-wrong-name-{width}-{scheme}")
    page.get_by_label("Name", exact=True).fill("phone")
    page.get_by_role("button", name="Rename").click()
    expect(page.locator("main")).to_contain_text(
        "Points with the name a7 are also added to this device"
    )
    look_at(page, f"device-{width}-{scheme}")
    page.get_by_role("combobox", name="Merge into").select_option(label="tablet")
    page.get_by_role("button", name="Merge").click()
    expect(page.locator("main")).to_contain_text("being merged into tablet")
    page.get_by_role("link", name="Change watch").click()
    page.get_by_role("link", name="Delete …").click()
    expect(page.locator("main")).to_contain_text("1 point will be deleted from your timeline")
    look_at(page, f"device-delete-{width}-{scheme}")
    page.get_by_role("button", name="Delete the device").click()
    expect(page.locator("main")).to_contain_text("being deleted")
    look_at(page, f"devices-removed-{width}-{scheme}")
    run_jobs("timeline.remove_device")
    page.reload()
    expect(page.locator("#devices")).to_contain_text("2 points · also a7, phone")
    expect(page.locator("#devices")).not_to_contain_text("watch")


def test_the_devices_of_a_file_are_told_apart(
    ann: User, visit: Callable[..., Page], tmp_path: Path, run_jobs
) -> None:
    path = tmp_path / "Records.json"
    path.write_bytes(records(111, 222, 111))
    page = visit(ann, "/timeline/imports", width=390)
    page.locator("input[type=file]").set_input_files(path)
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator("main")).to_contain_text("The file is waiting to be parsed.")
    run_jobs("timeline.stage")
    expect(page.locator("#parts")).to_contain_text("the others are in Google 222")
    look_at(page, "import-of-a-tag-390-light")
    page.goto("/timeline/imports")
    page.locator("input[type=file]").set_input_files(path)
    page.get_by_label("put all points on one device").check()
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator("main")).to_contain_text("for default as one device")
