"""Generate a report: data ──► HTML ──► PDF ──► file ──► (one transaction) the row refers to the
file.

Until the last step the earlier report of these days is unchanged. A job then deletes its file. A
file without a row, left over from a lost worker, is deleted by an invariant.
"""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now
from django.template.loader import render_to_string

from tailrace.domains.protection.files import storage
from tailrace.domains.protection.models import Report, StoredFile
from tailrace.domains.protection.services.reports import charts, pdf
from tailrace.domains.protection.services.reports.period import Period
from tailrace.domains.protection.services.reports.section import Content
from tailrace.domains.protection.services.reports.sections import all_sections
from tailrace.web.accounts.user_lock import locked

FOLDER = "reports"


class AccountClosed(Exception):
    """The account was closed while its report was generated."""


@dataclass(frozen=True, slots=True)
class Part:
    """A section and its content."""

    section: Any
    content: Content
    chart: str


def generate(user: User, period: Period) -> Report:
    """Generate the account's report of these days; it replaces an earlier one."""
    parts = collect(user.pk, period)
    content = pdf.to_pdf(to_html(user, period, parts))
    file = storage.write(FOLDER, content, ".pdf")
    return _replace(user, period, parts, file)


def collect(user_id: int, period: Period) -> list[Part]:
    parts = []
    for section in all_sections():
        content = section.collect(user_id, period)
        parts.append(Part(section, content, charts.bars(content.series or {}, period)))
    return parts


def to_html(user: User, period: Period, parts: list[Part]) -> str:
    context = {
        "account": user.get_username(),
        "period": period,
        "parts": parts,
        "is_empty": not any(part.content.count for part in parts),
    }
    return render_to_string("tailrace/protection/report/document.html", context)


def _replace(user: User, period: Period, parts: list[Part], file: StoredFile) -> Report:
    """Let the report of the period refer to the new file, and release its old file."""
    days: dict[str, Any] = {"first_day": period.first_day, "last_day": period.last_day}
    values: dict[str, Any] = {
        "file": file,
        "time_zone": period.zone.key,
        "totals": {part.section.name: dict(part.content.totals) for part in parts},
        "is_cut": any(part.content.is_cut for part in parts),
        "generated_at": Now(),
    }
    with locked(user):
        if not User.objects.filter(pk=user.pk, is_active=True).exists():
            raise AccountClosed
        old_file = Report.objects.filter(user=user, **days).values_list("file", flat=True).first()
        report, _new = Report.objects.update_or_create(user=user, **days, defaults=values)
        storage.release([old_file])
        _delete_oldest(user)
    return report


def _delete_oldest(user: User) -> None:
    kept = settings.PROTECTION_MAX_REPORTS_PER_USER
    rows = Report.objects.filter(user=user).order_by("-generated_at", "-pk")
    delete([report.pk for report in rows[kept : kept + 100]])


def delete(ids: list[int]) -> int:
    """Delete the reports, and enqueue jobs that delete their files; return the number of
    reports."""
    with transaction.atomic():
        reports = list(Report.objects.select_for_update().filter(pk__in=ids))
        storage.release([report.file_id for report in reports])
        Report.objects.filter(pk__in=[report.pk for report in reports]).delete()
    return len(reports)
