"""The pages of imports and of the timeline."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile

from tailrace.domains.timeline.models import Import
from tests.subscriptions.sample_domain import person
from tests.timeline.kit import gpx, now, track, upload, visible
from tests.web.program import allow
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> User:
    return person("ann")


def test_an_import_from_the_page_to_the_timeline(ann: User, run_imports: Callable[[], int]) -> None:
    browser = Visitor(ann)
    file = SimpleUploadedFile("walk.gpx", gpx([*track(50), (None, 1.0, 2.0)]))
    answer = browser.post("/timeline/imports", {"file": file, "device": "phone"})
    row = Import.objects.get()
    assert answer["Location"] == f"/timeline/imports/{row.pk}"
    assert "The file is waiting to be parsed." in browser.text(answer["Location"])
    run_imports()
    text = browser.text(f"/timeline/imports/{row.pk}")
    assert "50 points ready , 1 rejected (no time), 0 duplicates expected; promotes in " in text
    assert "no time: 1" in text
    assert "line 52" in text
    assert "walk.gpx" in browser.text("/timeline/imports")
    assert browser.get(f"/timeline/imports/{row.pk}/track").json()[0][0] == [52.0, 13.0]
    browser.post(f"/timeline/imports/{row.pk}/promote")
    run_imports()
    text = browser.text(f"/timeline/imports/{row.pk}")
    assert "50 new , 0 duplicates, 1 rejected (no time): 51 points read." in text
    assert len(browser.get(f"/timeline/imports/{row.pk}/track").json()[0]) == 50
    assert "Sunday, 1 March" in browser.text("/timeline/?month=2026-03")
    assert "Sunday, 1 March" in browser.text("/timeline/"), "the month of the last point"
    day = browser.text("/timeline/days/2026-03-01")
    assert "50 points, 09:00 to 09:08." in day
    assert "Times are in the local time zone, Europe/Berlin." in day
    assert "The day begins and ends at midnight in your time zone, UTC." in day
    assert len(browser.get("/timeline/days/2026-03-01/track").json()[0]) == 50
    cells = browser.get("/timeline/cells?month=2026-03").json()
    assert sum(count for _lat, _lon, count in cells) == 50
    answer = browser.post(f"/timeline/imports/{row.pk}/cancel")
    assert "The import was promoted; undo it instead." in browser.text(answer["Location"])
    text = browser.text(f"/timeline/imports/{row.pk}/undo")
    assert "50 points of 1 day will be removed" in text
    assert "1 March 2026 50" in text
    assert visible(ann) == 50, "nothing was removed by looking"
    browser.post(f"/timeline/imports/{row.pk}/undo")
    run_imports()
    assert "50 points removed" in browser.text(f"/timeline/imports/{row.pk}")
    assert visible(ann) == 0


def test_a_part_that_is_the_same_is_not_sent_again(ann: User, run_imports) -> None:
    browser, row = Visitor(ann), upload(ann, gpx(track(5)))
    html = browser.get(f"/timeline/imports/{row.pk}/part").content.decode()
    version = html.split("version=")[1][:16]
    assert 'hx-trigger="every 1s"' in html
    assert browser.get(f"/timeline/imports/{row.pk}/part?version={version}").status_code == 204
    run_imports()
    assert browser.get(f"/timeline/imports/{row.pk}/part?version={version}").status_code == 200
    browser.post(f"/timeline/imports/{row.pk}/cancel")
    assert now(row).state == "cancelled"
    assert 'every 10s"' in browser.get(f"/timeline/imports/{row.pk}/part").content.decode()


def test_what_is_wrong_with_an_upload_is_beside_its_field(ann: User, settings) -> None:
    browser = Visitor(ann)
    empty = browser.post("/timeline/imports", {"file": SimpleUploadedFile("a.gpx", b"")})
    assert empty.status_code == 422
    settings.IMPORT_MAX_UNFINISHED = 1
    for status in (302, 422):
        file = SimpleUploadedFile("a.gpx", gpx(track(3)))
        answer = browser.post("/timeline/imports", {"file": file})
        assert answer.status_code == status
    assert "The maximum number of unfinished imports is 1 (IMPORT_MAX_UNFINISHED)" in words(answer)
    settings.IMPORT_MAX_MEGABYTES = 0
    file = SimpleUploadedFile("a.gpx", bytes(100_000))
    assert browser.post("/timeline/imports", {"file": file}).status_code == 413


@pytest.mark.parametrize(
    "path",
    [
        "?month=x",
        "?month=0001-01",
        "?month=9999-12",
        "days/x",
        "days/9999-12-31",
        "cells",
        "cells?month=9999-12",
        "find?day=x",
    ],
)
def test_days_that_do_not_exist_are_not_found(ann: User, path: str) -> None:
    assert Visitor(ann).get(f"/timeline/{path}").status_code == 404


def test_operators_see_what_is_under_way_and_what_failed(ann: User, run_imports) -> None:
    upload(ann, gpx([*track(5), (None, 1.0, 2.0)]))
    upload(ann, b"nothing")
    run_imports()
    staff = person("operator")
    staff.is_staff = True
    staff.save()
    assert "under way" not in Visitor(staff).text("/overview/panels")
    allow(staff, "tailrace_timeline.view_import")
    browser = Visitor(User.objects.get(pk=staff.pk))
    text = browser.text("/overview/panels")
    assert "1 import under way. Staged points take" in text
    assert "ready promotes in" in text
    assert "· the whole file" in text
    assert "This file is not a location history" not in text, "it may quote the file"
    allow(staff, "tailrace_jobs.view_job_payload")
    browser = Visitor(User.objects.get(pk=staff.pk))
    assert "This file is not a location history" in browser.text("/overview/panels")
    answer = browser.get("/admin/tailrace_timeline/import/")
    assert answer.status_code == 200
    assert "track.gpx" not in words(answer)
    row = Import.objects.get(state="grace")
    assert browser.get(f"/admin/tailrace_timeline/import/{row.pk}/change/").status_code == 200
