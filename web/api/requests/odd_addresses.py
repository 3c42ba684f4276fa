"""Answer 400 to requests with values that PostgreSQL cannot store or compare: NUL characters,
before the view runs, and others (a time out of range, a number too large) after its error."""

import structlog
from django.db import DataError
from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from tailrace.web.api.problems import Problem

log = structlog.get_logger(__name__)

NUL = "the URL contains a NUL character (%00)"
NOT_A_NUMBER = "expected a number but got"
"""Part of the error text of Django's number fields, such as for an invalid id in an admin list."""
OUT_OF_RANGE = "the request contains a value that the database cannot compare: it is out of range"


class OddAddresses(MiddlewareMixin):
    async_capable = False

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        has_nul = "\0" in request.path or "%00" in request.META.get("QUERY_STRING", "")
        return _bad_request(request, NUL) if has_nul else None

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Return a 400 for an error of a page's view; the API handles its errors itself."""
        is_read = request.method in ("GET", "HEAD")
        if (is_read and isinstance(error, DataError)) or NOT_A_NUMBER in str(error):
            log.warning("web.odd_address", path=request.path, exc_info=error)
            return _bad_request(request, OUT_OF_RANGE)
        return None


def _bad_request(request: HttpRequest, detail: str) -> HttpResponse:
    if request.path.startswith("/api/"):
        return Problem(400, detail).response(request)
    return HttpResponse(f"{detail}\n", status=400, content_type="text/plain; charset=utf-8")
