"""The liveness page, GET /healthz/live: whether the web process lives.

The page uses no database and needs neither login nor Host header. gunicorn's event loop answers it
(`tailrace.config.servers.worker`); with other servers the first middleware does, in ASGI without a
thread.
"""

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_and_async_middleware

PATH = "/healthz/live"
BODY = b'{"status": "ok"}'


@sync_and_async_middleware
def answer_liveness(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Middleware that answers requests of PATH and passes on all others."""
    if iscoroutinefunction(get_response):

        async def in_event_loop(request: HttpRequest) -> HttpResponse:
            answer: HttpResponse
            answer = _answer() if request.path == PATH else await get_response(request)
            return answer

        return in_event_loop

    def in_thread(request: HttpRequest) -> HttpResponse:
        answer: HttpResponse = _answer() if request.path == PATH else get_response(request)
        return answer

    return in_thread


def _answer() -> HttpResponse:
    return HttpResponse(BODY, "application/json", headers={"Cache-Control": "no-store"})
