"""The page of the tables: their rows and sizes, their last vacuum, and the oldest snapshot."""

from typing import Any

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from tailrace.db import clock
from tailrace.db.connections import atomic
from tailrace.db.limits import reason, statement_limit
from tailrace.jobs.platform.inspection.recent import Recent
from tailrace.jobs.platform.inspection.storage import oldest_snapshot, sizes
from tailrace.jobs.platform.inspection.storage.connections import connections
from tailrace.jobs.platform.pages.access import for_staff

STATEMENT_SECONDS = 3
CACHE_SECONDS = 10.0


@require_GET
@for_staff
def storage(request: HttpRequest, template: str) -> HttpResponse:
    """Show the sizes of the tables, as a page or as the part of it that changes."""
    return render(request, template, _recent.get(CACHE_SECONDS))


def _read() -> dict[str, Any]:
    try:
        with atomic(), statement_limit(STATEMENT_SECONDS):
            return {
                "sizes": sizes(),
                "snapshot": oldest_snapshot(),
                "connections": connections(),
                "at": clock.now(),
            }
    except DatabaseError as error:
        return {"problem": reason(error), "at": clock.now()}


_recent = Recent(_read)
