"""Imports in a real browser: a file is uploaded, looked at, cancelled or promoted."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tailrace.domains.timeline.models import Import
from tests.browser.screens import SCREENS, Scheme, look_at
from tests.timeline.kit import gpx, stored, track

pytestmark = [pytest.mark.once, pytest.mark.slow, pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("import_folder"),
]  # fmt: skip


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
    look_at(page, "days")
    page.get_by_role("link", name="Sunday, 1 March").click()
    expect(page.locator("#map[data-drawn='400'][data-base='2']")).to_be_visible()
    expect(page.locator("#stretches")).to_contain_text("Europe/Berlin")
    look_at(page, "day")
    page.goto("/timeline/imports")
    page.get_by_role("link", name="Undo walk.gpx").click()
    expect(page.locator("main")).to_contain_text("400 points of 1 day will be removed")
    look_at(page, "undo")
    page.get_by_role("button", name="Undo the import").click()
    run_jobs("timeline.undo", "timeline.discard")
    expect(page.locator("main")).to_contain_text("400 points removed from your timeline.")
    assert stored(ann) == []
