"""Flower's settings: `celery -A config flower --conf=config/servers/flower.py`.

Flower has basic auth, listens only on this machine and is read-only: changes are made in the
admin, with permissions and an audit log. Flower cannot switch off its API: its routes are removed.
"""

from typing import Any

from django.conf import settings
from flower.urls import handlers

from config.setup import flower_auth


def _pattern(route: Any) -> str:
    return route[0] if isinstance(route, tuple) else route.regex.pattern


# /metrics needs no password, and names every queue.
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
