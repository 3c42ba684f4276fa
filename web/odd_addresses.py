"""Answer 400 to requests with values that PostgreSQL cannot store or compare.

NUL characters are refused before any view; what the database itself refuses (a time beyond its
range, a number too large) is refused when it does.
"""

from collections.abc import Callable

import structlog
from django.db import DataError
from django.http import HttpRequest, HttpResponse

from tailrace.web.api.problems import Problem

log = structlog.get_logger(__name__)

NUL = "the address has a NUL character (%00)"
NOT_A_NUMBER = "expected a number but got"
"""What a field of Django's says, such as of an id that the list of an admin page sends."""
OUT_OF_RANGE = "the request has a value that cannot be compared with any stored one"


class OddAddresses:
    """The middleware."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if "\0" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
            return _refused(request, NUL)
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Answer to a page; the API has answers of its own."""
        read = request.method in ("GET", "HEAD")
        if (read and isinstance(error, DataError)) or NOT_A_NUMBER in str(error):
            log.warning("web.odd_address", path=request.path, exc_info=error)
            return _refused(request, OUT_OF_RANGE)
        return None


def _refused(request: HttpRequest, detail: str) -> HttpResponse:
    if request.path.startswith("/api/"):
        return Problem(400, detail).response(request)
    return HttpResponse(f"{detail}\n", status=400, content_type="text/plain; charset=utf-8")
