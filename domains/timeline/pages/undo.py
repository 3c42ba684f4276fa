"""The page that undoes an import. It first shows how many points of each day will be removed."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_http_methods

from tailrace.domains.timeline.imports import decisions
from tailrace.domains.timeline.imports.errors import NotNow
from tailrace.domains.timeline.imports.steps.undo import points_by_day
from tailrace.domains.timeline.models import Import
from tailrace.web.accounts import budget
from tailrace.web.accounts.time_zones import zone_of
from tailrace.web.pages.forms import sentence
from tailrace.web.pages.frame import PersonRequest, for_person, show

MOST_DAYS = 60
COUNT_COST = 5
"""Number of ordinary requests that counting the points of an import counts as."""


@require_http_methods(["GET", "HEAD", "POST"])
@for_person
def undo(request: PersonRequest, id: int) -> HttpResponse:
    """GET: show how many points would be removed. POST: undo the import."""
    row = get_object_or_404(Import.objects.filter(user=request.user), pk=id)
    try:
        if request.method == "POST":
            decisions.undo(row.pk)
            messages.success(request, "The import is being undone. Its points are already hidden.")
            return redirect("timeline:import", row.pk)
        decisions.check_undo(row)
    except NotNow as error:
        messages.error(request, sentence(error))
        return redirect("timeline:import", row.pk)
    budget.spend(request.user.pk, cost=COUNT_COST)
    days = points_by_day(row, zone_of(request.user))
    context = {
        "row": row,
        "days": None if days is None else days[:MOST_DAYS],
        "day_count": len(days or ()),
        "points": row.inserted if days is None else sum(count for _, count in days),
        "more": max(0, len(days or ()) - MOST_DAYS),
    }
    return show(request, "tailrace/timeline/undo.html", context)
