"""Flower's settings (config/celery.py): basic auth, only on this machine, and read-only, since
changes are made in the admin, with permissions and an audit log. Flower cannot disable its API, so
its routes are removed, and it does not limit wrong passwords, so `limited` does."""

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from django.conf import settings
from flower.urls import handlers
from flower.views import BaseHandler
from tornado.web import HTTPError

from tailrace.config.startup.setup import flower_auth

GUESSES_PER_MINUTE = 20
"""Wrong passwords per minute after which all requests are refused, whoever sends them."""


def _pattern(route: Any) -> str:
    return route[0] if isinstance(route, tuple) else route.regex.pattern


def limited(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return Flower's check of the password, limited to GUESSES_PER_MINUTE wrong passwords."""
    failures: deque[float] = deque(maxlen=GUESSES_PER_MINUTE)

    def current_user(handler: Any) -> Any:
        if len(failures) == GUESSES_PER_MINUTE and time.monotonic() - failures[0] < 60:
            raise HTTPError(429)
        try:
            return check(handler)
        except (HTTPError, TypeError):  # TypeError: the password is not ASCII
            if "Authorization" in handler.request.headers:
                failures.append(time.monotonic())
            raise HTTPError(401) from None

    return current_user


BaseHandler.get_current_user = limited(BaseHandler.get_current_user)
# /metrics is removed, too: it needs no password and names every queue.
handlers[:] = [route for route in handlers if not _pattern(route).startswith(("/api/", "/metrics"))]

address = "127.0.0.1"
port = settings.FLOWER_PORT
basic_auth = [flower_auth()]
read_only = True
max_tasks = 10_000
max_workers = 500
persistent = True
db = str(settings.VAR_DIR / "flower")
state_save_interval = 60_000
