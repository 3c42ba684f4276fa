"""The liveness page, GET /healthz/live: whether the web process lives.

The page uses no database and needs neither login nor Host header. gunicorn's event loop answers it
(`tailrace.config.servers.worker`); with other servers the first middleware does.
"""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse

PATH = "/healthz/live"
BODY = b'{"status": "ok"}'


def answer_liveness(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Middleware that answers requests of PATH and passes on all others."""

    def answer(request: HttpRequest) -> HttpResponse:
        response: HttpResponse = _answer() if request.path == PATH else get_response(request)
        return response

    return answer


def _answer() -> HttpResponse:
    return HttpResponse(BODY, "application/json", headers={"Cache-Control": "no-store"})
