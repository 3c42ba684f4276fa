"""The heartbeat of a worker, recorded every few seconds: the time, the worker's queues, processes,
memory and code version."""

import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import psutil

from tailrace.db import clock
from tailrace.db.query import execute
from tailrace.jobs.engine.maintenance.workers.code_version import code_version

INTERVAL_SECONDS = 10

_RECORD = f"""
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO tailrace_jobs_pulse (name, at, queues, by, facts)
SELECT %(name)s, {clock.NOW}, %(queues)s::jsonb, '', %(facts)s::jsonb FROM quick
ON CONFLICT (name) DO UPDATE
  SET at = excluded.at, queues = excluded.queues, facts = excluded.facts
"""


def _facts_of(pool: Any) -> dict[str, Any]:
    """Return the kind of a worker's Celery pool (or None), its concurrency, and its processes with
    their memory in bytes."""
    main = psutil.Process()
    processes = main.children() or [main]
    return {
        "pool": type(pool).__module__.rpartition(".")[2],
        "concurrency": int(getattr(pool, "num_processes", 0) or len(processes)),
        "memory": _memory(main),
        "processes": [{"pid": each.pid, "memory": _memory(each)} for each in processes],
    }


def _memory(process: psutil.Process) -> int:
    """Return the resident memory of a process in bytes; 0 if it has just ended."""
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


class Heartbeat:
    """The heartbeat of the worker with this node name; `queues` returns the worker's queues."""

    def __init__(self, node: str, queues: Callable[[], Iterable[str]], pool: Any = None) -> None:
        self._queues, self._pool, self._due = queues, pool, 0.0
        host, pid = socket.gethostname(), os.getpid()
        code = code_version()
        self.name = f"worker:{node} {host}:{pid}"
        """Unique, even if two workers have the same node name."""
        self._facts = {
            "node": node,
            "host": host,
            "pid": pid,
            "started_at": datetime.now(UTC).isoformat(),
            "code": code.digest,
        }

    def record_when_due(self) -> float:
        """Record the heartbeat if it is due; return the seconds until it is due again."""
        if time.monotonic() >= self._due:
            queues = json.dumps(sorted(self._queues()))
            facts = json.dumps(self._facts | _facts_of(self._pool))
            execute(_RECORD, name=self.name, queues=queues, facts=facts)
            self._due = time.monotonic() + INTERVAL_SECONDS
        return self._due - time.monotonic()
