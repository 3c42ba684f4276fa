"""What operators see of imports, and what not: where somebody was, and what a file contains."""

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from tailrace.domains.timeline.imports import decisions
from tailrace.domains.timeline.imports.files.parsing.file_errors import Malformed, error_position
from tailrace.domains.timeline.models import Import
from tailrace.domains.timeline.platform import inspection
from tailrace.jobs.models import Job
from tests.subscriptions.sample_domain import person
from tests.timeline.kit import gpx, now, track, upload
from tests.web.program import allow
from tests.web.visitor import Visitor

pytestmark = pytest.mark.django_db
VIEW = "tailrace_timeline.view_import"
CUT = gpx([*track(3), (None, 51.2345678, 7.7654321)], end="")
"""A file without its end, with a point that is rejected."""


@pytest.fixture
def ann() -> User:
    return person("ann")


def operator(login: str, *permissions: str) -> Visitor:
    user = person(login)
    user.is_staff = True
    user.save()
    allow(user, *permissions)
    return Visitor(user)


def details(row: Import) -> str:
    return reverse("admin:tailrace_timeline_import_change", args=[row.pk])


def test_the_promotion_line_says_who_is_next(ann, run_imports, monkeypatch) -> None:
    rows = [upload(ann, gpx(track(5, first=n))) for n in range(3)]
    run_imports()
    decisions.promote_now(rows[2].pk)
    job = Job.objects.get(pk=now(rows[0]).job_id)
    clerk = operator("clerk", VIEW, "tailrace_jobs.view_job")
    text = clerk.text("/")
    assert "3 imports under way" in text
    order = [text.index(f"import {row.pk} ") for row in (rows[2], rows[0], rows[1])]
    assert order == sorted(order)
    assert (
        f"import {rows[0].pk} · 1 ahead, due {job.due_at:%Y-%m-%d %H:%M:%S} UTC job {job.pk}"
        in text
    )
    assert f"1 ahead, due {job.due_at:%Y-%m-%d %H:%M}" in clerk.text(details(rows[0]))
    listed = clerk.text(reverse("admin:tailrace_timeline_import_changelist"))
    assert "0 ahead" in listed
    assert "2 ahead" in listed
    monkeypatch.setattr(inspection, "MOST_COUNTED", 1)
    assert "1 or more ahead" in clerk.text(details(rows[1]))
    Job.objects.filter(pk=now(rows[2]).job_id).update(state="running")
    assert f"import {rows[2].pk} · being promoted" in clerk.text("/")
    assert f"job {job.pk}" not in operator("other", VIEW).text("/")


def test_the_tables_of_staged_points_have_a_size(ann, run_imports) -> None:
    row = upload(ann, gpx(track(5)))
    run_imports()
    clerk = operator("clerk", VIEW)
    for path in ("/", details(row), reverse("admin:tailrace_timeline_import_changelist")):
        assert "8.0 KB" in clerk.text(path).replace("\xa0", " "), path
    decisions.promote_now(row.pk)
    run_imports()
    assert "KB" not in clerk.text(details(row))
    assert f"{row.pk} ann" in clerk.text(reverse("admin:tailrace_timeline_import_changelist"))


def test_a_failure_has_its_line_and_nothing_of_the_file(ann, run_imports) -> None:
    row = upload(ann, CUT, name="clinic.gpx")
    bad = upload(ann, gpx([(None, 51.2345678, 7.7654321)]))
    run_imports()
    assert [now(each).state for each in (row, bad)] == ["needs_decision", "failed"]
    position = error_position(now(row).error)
    assert position.startswith("line ")
    clerk, chief = (
        operator("clerk", VIEW),
        operator("chief", VIEW, "tailrace_jobs.view_job_payload"),
    )
    paths = ("/", details(row), reverse("admin:tailrace_timeline_import_changelist"))
    for reader in (clerk, chief):
        for path in paths:
            text = reader.text(path)
            assert position in text, path
            assert not any(secret in text for secret in ("51.2345", "7.7654", "clinic")), path
        assert "no time, 1: line 5" in reader.text(details(row))
    assert now(row).error not in clerk.text(details(row))
    assert "tailrace_jobs.view_job_payload" in clerk.text(details(row))
    assert now(row).error in chief.text(details(row))
    assert "· the whole file" in clerk.text("/")
    assert now(bad).error in chief.text("/")


def test_who_may_not_see_imports_sees_none(ann, run_imports) -> None:
    row = upload(ann, CUT)
    run_imports()
    guest = operator("guest", "tailrace_jobs.view_job", "tailrace_jobs.view_job_payload")
    assert "Promotion queue" not in guest.text("/")
    assert guest.get(details(row)).status_code == 403


@pytest.mark.parametrize(
    ("error", "position"),
    [
        (Malformed("It is cut", line=7, offset=1204), "line 7, byte 1,204"),
        (Malformed("It is cut", line=7, member="trips (2), line 5/a.gpx"), "line 7"),
        (Malformed("It is cut", offset=1_000_000), "byte 1,000,000"),
        (Malformed("It is cut", member="51.5, 7.4.gpx"), ""),
        (Malformed("There is no point"), ""),
    ],
)
def test_the_position_of_an_error_says_nothing_of_the_file(error: Malformed, position: str) -> None:
    assert error_position(str(error)) == position
