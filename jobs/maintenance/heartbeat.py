"""The heartbeat of a worker: every few seconds it records its time and the queues it serves."""

import json
import time
from collections.abc import Callable, Iterable

from db import clock
from db.query import execute

INTERVAL_SECONDS = 10

_RECORD = f"""
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO jobs_pulse (name, at, queues, by)
SELECT %(name)s, {clock.NOW}, %(queues)s::jsonb, '' FROM quick
ON CONFLICT (name) DO UPDATE SET at = excluded.at, queues = excluded.queues
"""


class Heartbeat:
    """The heartbeat of the worker with this node name; `queues` returns the queues it serves."""

    def __init__(self, node: str, queues: Callable[[], Iterable[str]]) -> None:
        self._node, self._queues, self._due = node, queues, 0.0

    def record_when_due(self) -> float:
        """Record it if it is time; return the seconds until the next time."""
        if time.monotonic() >= self._due:
            queues = json.dumps(sorted(self._queues()))
            execute(_RECORD, name=f"worker:{self._node}", queues=queues)
            self._due = time.monotonic() + INTERVAL_SECONDS
        return self._due - time.monotonic()
