"""Flower's settings: `celery -A config flower --conf=config/flower.py`.

Behind basic auth, on this machine alone, for looking only: what changes something is in the
admin, where it is checked and written down. Flower has no switch for its API, so its routes go.
"""

from typing import Any

from flower.urls import handlers

from config import settings
from config.setup import flower_auth


def _pattern(route: Any) -> str:
    return route[0] if isinstance(route, tuple) else route.regex.pattern


# /metrics asks for no password, and names every queue.
handlers[:] = [one for one in handlers if not _pattern(one).startswith(("/api/", "/metrics"))]

address = "127.0.0.1"
port = settings.FLOWER_PORT
basic_auth = [flower_auth()]
read_only = True
max_tasks = 10_000
max_workers = 500
persistent = True
db = str(settings.VAR_DIR / "flower")
state_save_interval = 60_000
