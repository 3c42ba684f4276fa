"""The reports of a customer: the list, the downloads, and the form to request one."""

from collections.abc import Sequence
from datetime import date, timedelta
from math import ceil
from typing import Any

from django import forms
from django.contrib import messages
from django.http import FileResponse, Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_http_methods, require_safe

from tailrace.db.query import database_now
from tailrace.domains.protection.files import storage
from tailrace.domains.protection.models import Report
from tailrace.domains.protection.pages.frame import live_part, show_page
from tailrace.domains.protection.services.reports.period import (
    DEFAULT_DAYS,
    MOST_DAYS,
    InvalidPeriod,
    Period,
)
from tailrace.domains.protection.services.reports.requests import (
    TooManyReports,
    is_being_made,
    request_report,
)
from tailrace.domains.protection.services.reports.section import Section
from tailrace.domains.protection.services.reports.sections import all_sections
from tailrace.web.accounts.time_zones import zone_of
from tailrace.web.pages.forms import PageForm, sentence
from tailrace.web.pages.frame import PersonRequest, for_person, within_budget
from tailrace.web.pages.lists import list_page, live_response

DOWNLOAD_COST = 2


class PeriodForm(PageForm, forms.Form):
    first_day = forms.DateField(
        label="From", widget=forms.DateInput({"type": "date"}, format="%Y-%m-%d")
    )
    last_day = forms.DateField(
        label="To",
        widget=forms.DateInput({"type": "date"}, format="%Y-%m-%d"),
        help_text=f"This day is included. A report has at most {MOST_DAYS} days.",
    )


@require_http_methods(["GET", "HEAD", "POST"])
@for_person
def reports(request: PersonRequest) -> HttpResponse:
    """GET: the list. POST: request a report of these days."""
    zone = zone_of(request.user)
    today = database_now().astimezone(zone).date()
    if request.method != "POST":
        return _show(request, _empty_form(today))
    form = PeriodForm(request.POST)
    if form.is_valid():
        try:
            request_report(request.user, Period(**form.cleaned_data, zone=zone).check(today))
        except InvalidPeriod as error:
            form.add_error("last_day", sentence(error))
        except TooManyReports as error:
            form.add_error(None, f"{error}. Try again in {ceil(error.wait / 3600)} h.")
            response = _show(request, form, status=429)
            response["Retry-After"] = str(ceil(error.wait))
            return response
        else:
            messages.success(request, "Your report is being created. It appears here in a moment.")
            return redirect("protection:reports")
    return _show(request, form, status=422)


@require_safe
@for_person
def reports_list(request: PersonRequest) -> HttpResponse:
    return live_response(request, _list(request))


@require_safe
@within_budget(DOWNLOAD_COST)
def download(request: PersonRequest, id: int) -> FileResponse:
    """Return the PDF of one of the user's own reports."""
    report = get_object_or_404(Report.objects.select_related("file"), pk=id, user=request.user)
    return storage.download(report, Http404(), "application/pdf")


def _empty_form(today: date) -> PeriodForm:
    first_day = today - timedelta(days=DEFAULT_DAYS - 1)
    return PeriodForm(initial={"first_day": first_day, "last_day": today})


def _counts(report: Report, sections: Sequence[Section]) -> list[str]:
    """Return the numbers of the report, such as `3 alerts`, in the order of its sections."""
    return [
        f"{report.totals[section.name].get(section.name, 0):,} {section.title.lower()}"
        for section in sections
        if section.name in report.totals
    ]


def _list(request: PersonRequest) -> str:
    rows = Report.objects.filter(user=request.user).select_related("file")
    page, older = list_page(request, rows)
    sections, being_made = all_sections(), is_being_made(request.user)
    context: dict[str, Any] = {
        "reports": [(row, _counts(row, sections)) for row in page],
        "older": older,
        "being_made": being_made,
    }
    template = "tailrace/protection/reports_list.html"
    return live_part(request, template, context, "reports_list", under_way=being_made)


def _show(request: PersonRequest, form: PeriodForm, status: int = 200) -> HttpResponse:
    context = {"form": form, "list": _list(request)}
    return show_page(request, "tailrace/protection/reports.html", context, status)
