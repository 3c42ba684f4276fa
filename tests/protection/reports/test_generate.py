"""Reports: their numbers are the database's, one period has one file, and nothing is fetched."""

import inspect
import re
from datetime import UTC, date, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from pypdf import PdfReader

from tailrace.domains.protection.files import storage
from tailrace.domains.protection.handlers import reports_generate
from tailrace.domains.protection.invariants import FilesHaveOwners
from tailrace.domains.protection.models import (
    Alert,
    Breach,
    Exposure,
    RemovalRequest,
    Report,
    Severity,
    StoredFile,
)
from tailrace.domains.protection.models.breach import ExposureState
from tailrace.domains.protection.platform.checks import libraries_are_installed
from tailrace.domains.protection.services.reports import pdf, requests, section
from tailrace.domains.protection.services.reports.period import Period
from tailrace.domains.protection.services.reports.sections import all_sections
from tailrace.domains.protection.services.watchlist import items
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job
from tailrace.web.accounts.deletion import delete_account, request_deletion
from tests.security.remains import files_in
from tests.servers.web import Response, serving
from tests.subscriptions.sample_domain import person

pytestmark = pytest.mark.django_db
OCTOBER = {"first_day": "2026-10-01", "last_day": "2026-10-31"}
NOON = datetime(2026, 10, 5, 12, tzinfo=UTC)
LIBRARY = "libpango-of-no-machine.so.0"


@pytest.fixture
def ann() -> User:
    return person("ann")


def alert(user: User, severity: Severity, at: datetime = NOON, **details: Any) -> Alert:
    row = Alert.objects.create(
        user=user, kind="exposure", source="hibp", severity=severity, details=details
    )
    Alert.objects.filter(pk=row.pk).update(raised_at=at)
    return row


def exposure(user: User, title: str, state: ExposureState = ExposureState.NEW) -> Exposure:
    item = items.add(user.pk, "email", f"{title[:3].lower()}@example.org")
    breach = Breach.objects.create(source="hibp_breaches", name=title, title=title)
    row = Exposure.objects.create(
        user=user, item=item, breach=breach, severity=Severity.WARNING, state=state
    )
    Exposure.objects.filter(pk=row.pk).update(first_at=NOON)
    return row


def report_of(user: User, run_jobs: Any, **payload: Any) -> Report:
    """Let a worker make the report; return it."""
    job = enqueue(requests.HANDLER, {"account": user.pk, **(payload or OCTOBER)})
    run_jobs(requests.HANDLER)
    done = Job.objects.get(pk=job)
    assert done.state == "completed", done.error
    return Report.objects.select_related("file").get(pk=done.result["report"])


def text_of(report: Report) -> str:
    return read_back(storage.read(report.file))


def read_back(content: bytes) -> str:
    pages = PdfReader(BytesIO(content)).pages
    return " ".join(" ".join(page.extract_text().split()) for page in pages)


def test_the_numbers_in_the_pdf_are_the_databases(ann, run_jobs) -> None:
    for severity, count in ((Severity.CRITICAL, 3), (Severity.WARNING, 5), (Severity.INFO, 2)):
        for number in range(count):
            alert(ann, severity, NOON + timedelta(hours=number), breaches=["Adobe"])
    alert(ann, Severity.INFO, datetime(2026, 9, 30, 23, 59, tzinfo=UTC))
    alert(ann, Severity.INFO, datetime(2026, 11, 1, tzinfo=UTC))
    alert(person("bob"), Severity.CRITICAL)
    for title, state in (("Adobe", "new"), ("LinkedIn", "resolved"), ("Canva", "new")):
        exposure(ann, title, ExposureState(state))
    for broker, state in (("acme", "removed"), ("other", "submitted")):
        RemovalRequest.objects.create(user=ann, broker=broker, state=state, changed_at=NOON)
    report = report_of(ann, run_jobs)
    assert report.totals["removals"]["removed"] == report.totals["removals"]["submitted"] == 1
    assert report.totals["alerts"] == {"alerts": 10, "critical": 3, "warning": 5, "info": 2}
    assert report.totals["exposures"] == {"exposures": 3, "new": 2, "known": 0, "resolved": 1}
    text = text_of(report)
    assert report.totals.pop("changes")["changes"] == 0
    assert "No change of a watched property was found in these days." in text
    expected = {label: number for part in report.totals.values() for label, number in part.items()}
    numbers = re.findall(rf"(\d+) ({'|'.join(expected)})", text)
    assert {label: int(number) for number, label in reversed(numbers)} == expected
    assert text.count("2026-10-05 12:00") == 3
    assert "1 October 2026 to 31 October 2026 · ann" in text
    assert "LinkedIn" in text
    assert "8 9 10 01 Oct 05 Oct" in text, "the chart of the alerts, up to the ten of one day"
    assert "31 Oct critical warning info" in text, "and its legend"
    assert report.file.size == len(storage.read(report.file))
    assert not report.is_cut


@pytest.mark.parametrize("part", all_sections(), ids=lambda part: part.name)
def test_numbers_and_chart_of_a_section_are_read_in_one_statement(
    ann, part, django_assert_num_queries
) -> None:
    """So the numbers and the chart agree. The other statement reads the lines."""
    with django_assert_num_queries(2):
        part.collect(ann.pk, Period(date(2026, 10, 1), date(2026, 10, 31), ZoneInfo("UTC")))


def test_a_period_without_data_makes_an_honest_empty_report(ann, run_jobs) -> None:
    report = report_of(ann, run_jobs)
    text = text_of(report)
    assert "Nothing was recorded in these days." in text
    assert "No alerts in these days." in text
    assert "05 Oct" not in text, "no empty chart"
    assert report.totals["alerts"]["alerts"] == 0


def test_the_same_period_again_takes_the_place_of_its_file(
    ann, run_jobs, protection_folder: Path
) -> None:
    first = report_of(ann, run_jobs)
    alert(ann, Severity.CRITICAL)
    second = report_of(ann, run_jobs)
    assert second.pk == first.pk
    assert second.file_id != first.file_id
    assert "1 alerts" in text_of(second)
    assert len(files_in(protection_folder)) == 2, "the old one goes by a job"
    run_jobs(storage.HANDLER)
    assert [path.name for path in files_in(protection_folder)] == [Path(second.file.key).name]
    assert StoredFile.objects.get() == second.file


def test_a_crash_before_the_switch_leaves_the_old_file_and_no_orphan(
    ann, run_jobs, protection_folder: Path, monkeypatch, clock
) -> None:
    old = report_of(ann, run_jobs)
    with monkeypatch.context() as patch:
        patch.setattr(reports_generate, "_replace", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            reports_generate.generate(
                ann, Period(date(2026, 10, 1), date(2026, 10, 31), ZoneInfo("UTC"))
            )
    assert Report.objects.get().file_id == old.file_id
    assert text_of(old)
    assert len(files_in(protection_folder)) == 2
    sweep = FilesHaveOwners()
    assert sweep.find() == [], "somebody may still be writing it"
    clock.step(3700)
    assert sweep.repair(sweep.find()) == 1
    assert sweep.repair(sweep.find()) == 1, "its job waits, so the file is not left over"
    run_jobs(storage.HANDLER)
    assert StoredFile.objects.get().pk == old.file_id
    assert len(files_in(protection_folder)) == 1


def test_a_file_that_a_report_has_is_not_deleted(ann, run_jobs) -> None:
    report = report_of(ann, run_jobs)
    storage.release([report.file_id])
    run_jobs(storage.HANDLER)
    assert text_of(report)


def test_the_reports_of_a_closed_account_go_with_their_files(
    ann, run_jobs, protection_folder: Path
) -> None:
    report_of(ann, run_jobs)
    request_deletion(ann)
    assert delete_account(ann.pk)
    run_jobs(storage.HANDLER)
    assert files_in(protection_folder) == []
    assert not StoredFile.objects.exists()


def test_more_reports_than_are_kept_push_the_oldest_out(ann, run_jobs, settings) -> None:
    settings.PROTECTION_MAX_REPORTS_PER_USER = 2
    days = ["2026-10-01", "2026-10-02", "2026-10-03"]
    for day in days:
        report_of(ann, run_jobs, first_day=day, last_day=day)
    kept = Report.objects.order_by("first_day").values_list("first_day", flat=True)
    assert [str(day) for day in kept] == days[1:]


def test_nothing_outside_the_report_is_fetched(ann, run_jobs) -> None:
    with serving(lambda _request: Response()) as server:
        address = f"{server.url}/x.png"
        attack = f"<img src='{address}'><link rel=stylesheet href='{address}'>"
        exposure(ann, f"Leak {attack}")
        alert(ann, Severity.CRITICAL, breaches=[attack])
        report = report_of(ann, run_jobs)
        assert "<img src=" in text_of(report), "it stands there as text"
        page = (
            f"<link rel=stylesheet href='{address}'><link rel=attachment href='file:///etc/passwd'>"
            f"<style>@import url('{address}'); body {{ background: url({address}) }}"
            f" @font-face {{ font-family: x; src: url({address}) }}</style>"
            f"<img src='{address}'><object data='file:///etc/passwd'></object>"
            f"<svg width='9' height='9'><image href='{address}'/><use href='{address}#a'/></svg>"
            "<p style='font-family: x'>still here</p>"
        )
        content = pdf.to_pdf(page)
        assert server.requests == []
    assert "still here" in read_back(content)
    assert b"root:" not in content
    assert PdfReader(BytesIO(content)).attachments == {}


def test_a_huge_account_gets_a_report_that_is_cut_and_says_so(ann, run_jobs, monkeypatch) -> None:
    assert section.MOST_LINES == 300
    monkeypatch.setattr(section, "MOST_LINES", 4)
    for _ in range(9):
        alert(ann, Severity.INFO)
    report = report_of(ann, run_jobs)
    assert report.is_cut
    text = text_of(report)
    assert "9 alerts" in text
    assert "The table shows the newest 4 of 9." in text


@pytest.mark.parametrize(
    ("days", "message"),
    [
        (("2026-10-02", "2026-10-01"), "the first day, 2026-10-02, is after the last day"),
        (("2024-01-01", "2026-10-01"), "a report has at most 366"),
        (("2026-10-02", "2999-10-01"), "at most 366"),
        (("2999-10-02", "2999-10-03"), "is in the future; today is"),
        (("2026-10-02", None), "give both first_day and last_day"),
    ],
)
def test_days_of_which_there_is_no_report_fail_at_once(ann, run_jobs, days, message) -> None:
    payload = {"account": ann.pk, "first_day": days[0], "last_day": days[1]}
    job = enqueue(requests.HANDLER, payload)
    run_jobs(requests.HANDLER)
    done = Job.objects.get(pk=job)
    assert done.state == "failed"
    assert message in done.error


def test_a_missing_library_is_an_error_that_names_the_packages(ann, run_jobs, monkeypatch) -> None:
    assert libraries_are_installed(None) == []
    monkeypatch.setattr(pdf, "LIBRARIES", {LIBRARY: "libpango-1.0-0"})
    job = enqueue(requests.HANDLER, {"account": ann.pk, **OCTOBER})
    run_jobs(requests.HANDLER)
    done = Job.objects.get(pk=job)
    assert done.state == "failed"
    assert "apt-get install libpango-1.0-0 fonts-dejavu-core" in done.error
    [warning] = libraries_are_installed(None)
    assert warning.msg in done.error


def test_no_library_is_missed_that_weasyprint_can_do_without() -> None:
    from weasyprint.text import ffi

    calls = re.findall(r"_dlopen\(\s*ffi,(.*?)\)", inspect.getsource(ffi), re.DOTALL)
    needed = [call for call in calls if "allow_fail" not in call]
    assert len(needed) < len(calls), "some are optional"
    assert set(pdf.LIBRARIES) <= set(re.findall(r"'(lib[^']+\.so\.\d)'", "".join(needed)))


def test_an_account_that_is_gone_gets_no_report(run_jobs) -> None:
    job = enqueue(requests.HANDLER, {"account": 999_999})
    run_jobs(requests.HANDLER)
    assert Job.objects.get(pk=job).state == "skipped"
