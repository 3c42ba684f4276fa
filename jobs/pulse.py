"""pulse: each worker says every few seconds that it lives, and which queues it listens on."""

import json
import time
from typing import Any

import structlog
from celery import current_app
from celery.signals import heartbeat_sent, worker_ready
from django.db import DatabaseError, connection

from events import clock

log = structlog.get_logger(__name__)

EVERY_SECONDS = 10
_last = 0.0

_BEAT = f"""
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO jobs_pulse (name, at, queues)
SELECT %(name)s, {clock.NOW}, %(queues)s::jsonb FROM quick
ON CONFLICT (name) DO UPDATE SET at = excluded.at, queues = excluded.queues
"""


@worker_ready.connect
def begin(sender: Any, **kwargs: Any) -> None:
    """Celery gives its Consumer."""
    _beat(sender.hostname)


@heartbeat_sent.connect
def go_on(sender: Any, **kwargs: Any) -> None:
    """Celery gives its Heart, every two seconds."""
    _beat(sender.eventer.hostname)


def _beat(hostname: str) -> None:
    """Write the pulse, at most every EVERY_SECONDS. This runs in the worker's main process, which
    a database that is away must not stop."""
    global _last
    if time.monotonic() - _last < EVERY_SECONDS:
        return
    _last = time.monotonic()
    queues = sorted(current_app.amqp.queues.consume_from)
    try:
        with connection.cursor() as cursor:
            params = {"name": f"worker:{hostname}", "queues": json.dumps(queues)}
            cursor.execute(_BEAT, clock.params() | params)
    except DatabaseError as error:
        log.warning("pulse.not_written", error=str(error).strip())
    finally:
        # The main process forks: no child may inherit an open connection.
        connection.close()
