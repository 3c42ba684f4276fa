"""Generate a report: data ──► HTML ──► PDF ──► file ──► (one transaction) the row refers to the
file.

Until the last step the earlier report of these days is unchanged. A job then deletes its file. A
file without a row, left over from a lost worker, is deleted by an invariant.
"""

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.template.loader import render_to_string

from tailrace.domains.protection.files import storage
from tailrace.domains.protection.models import Report, StoredFile
from tailrace.domains.protection.services.reports import pdf
from tailrace.domains.protection.services.reports.period import Period
from tailrace.domains.protection.services.reports.section import Content
from tailrace.domains.protection.services.reports.sections import all_sections
from tailrace.web.accounts.user_lock import locked

FOLDER = "reports"


class AccountClosed(Exception):
    """The account was closed while its report was generated."""


def generate(user: User, period: Period) -> Report:
    """Generate the account's report of these days; it replaces an earlier one."""
    contents = [section.collect(user.pk, period) for section in all_sections()]
    context = {
        "account": user.get_username(),
        "period": period,
        "contents": contents,
        "is_empty": not any(content.count for content in contents),
    }
    html = render_to_string("tailrace/protection/report/document.html", context)
    file = storage.write(FOLDER, pdf.to_pdf(html), ".pdf")
    return _replace(user, period, contents, file)


def _replace(user: User, period: Period, contents: list[Content], file: StoredFile) -> Report:
    """Let the report of the period refer to the new file, and release its old file."""
    days: dict[str, Any] = {"first_day": period.first_day, "last_day": period.last_day}
    values: dict[str, Any] = {
        "file": file,
        "time_zone": period.zone.key,
        "totals": {content.section.name: dict(content.totals) for content in contents},
        "is_cut": any(content.is_cut for content in contents),
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
    oldest = [report.pk for report in rows[kept : kept + 100]]
    storage.delete_owners(Report.objects.filter(pk__in=oldest))
