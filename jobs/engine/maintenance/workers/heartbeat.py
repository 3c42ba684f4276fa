"""The heartbeat of a worker: its time is recorded every two seconds, with the worker's queues,
processes, memory and code version every ten."""

import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import psutil

from tailrace.db import clock
from tailrace.db.query import execute, query
from tailrace.jobs.engine.maintenance.workers import lost_workers
from tailrace.jobs.engine.maintenance.workers.children import Children
from tailrace.jobs.engine.maintenance.workers.code_version import code_version
from tailrace.jobs.engine.maintenance.workers.memory_minutes import MemoryMinutes
from tailrace.jobs.runtime import shutdown, thread_failures

INTERVAL_SECONDS = 2
FACTS_SECONDS = 10
LOOK_SECONDS = 5
"""Interval in which a worker checks whether other workers of the machine have ended."""

_RECORD = f"""
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO tailrace_jobs_pulse (name, at, queues, by, facts)
SELECT %(name)s, {clock.NOW}, %(queues)s::jsonb, '', %(facts)s::jsonb FROM quick
ON CONFLICT (name) DO UPDATE
  SET at = excluded.at, queues = excluded.queues, facts = excluded.facts
"""
_BEAT = f"""
UPDATE tailrace_jobs_pulse SET at = {clock.NOW}
WHERE name = %(name)s AND set_config('synchronous_commit', 'off', true) IS NOT NULL
"""
_OF_THIS_HOST = """
SELECT name, (facts ->> 'pid')::int FROM tailrace_jobs_pulse
WHERE name LIKE 'worker:%%' AND facts ->> 'node' = %(node)s AND facts ->> 'host' = %(host)s
UNION ALL
SELECT name, split_part(by, ':', 2)::int FROM tailrace_jobs_pulse
WHERE name LIKE 'thread:%%' AND split_part(by, ':', 1) = %(host)s
"""
_DELETE_OWN = """
DELETE FROM tailrace_jobs_pulse
WHERE name = %(name)s OR name LIKE 'thread:%%' AND by = %(process)s
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
        self._queues, self._pool = queues, pool
        self._children = Children(pool)
        self._memory = MemoryMinutes()
        self._due = self._facts_due = self._look_due = 0.0
        self._is_stopping = False
        host, pid = socket.gethostname(), os.getpid()
        self.name = f"worker:{node} {host}:{pid}"
        """Unique, even if two workers have the same node name."""
        started_at = datetime.now(UTC).isoformat()
        self._facts = {"node": node, "host": host, "pid": pid, "started_at": started_at}
        self._facts |= lost_workers.facts()

    def beat(self) -> float:
        """Record the heartbeat if it is due, and rescue the jobs of processes and workers that
        died; return the seconds until the next beat is due."""
        pause = self._record_when_due()
        self._children.rescue_jobs_of_dead()
        return pause

    def _record_when_due(self) -> float:
        now = time.monotonic()
        begins_to_stop = shutdown.requested() and not self._is_stopping
        if now >= self._due or begins_to_stop:
            if now >= self._facts_due or begins_to_stop or not execute(_BEAT, name=self.name):
                self._record_facts()
            if now >= self._look_due:
                lost_workers.rescue_jobs()
                self._look_due = now + LOOK_SECONDS
            self._due = time.monotonic() + INTERVAL_SECONDS
        return max(self._due - time.monotonic(), 0.0)

    def remove(self) -> None:
        """Delete the heartbeat, and the failures of this process: it ends as it was asked to."""
        execute(_DELETE_OWN, name=self.name, process=thread_failures.process())

    def _record_facts(self) -> None:
        if "code" not in self._facts:
            self._facts["code"] = code_version().digest
            self._remove_predecessors()
        self._is_stopping = shutdown.requested()
        facts: dict[str, Any] = (
            self._facts | _facts_of(self._pool) | {"stopping": self._is_stopping}
        )
        others = (each for each in facts["processes"] if each["pid"] != facts["pid"])
        total = facts["memory"] + sum(each["memory"] for each in others)
        self._memory.add(total, time.monotonic())
        facts["memory_minutes"] = self._memory.values()
        queues = json.dumps(sorted(self._queues()))
        execute(_RECORD, name=self.name, queues=queues, facts=json.dumps(facts))
        self._facts_due = time.monotonic() + FACTS_SECONDS

    def _remove_predecessors(self) -> None:
        """Delete the heartbeats of workers with the same name that were killed on this host, and
        the failures of processes of this host that have ended."""
        lost_workers.rescue_jobs()  # it reads these heartbeats
        known = {"node": self._facts["node"], "host": self._facts["host"]}
        rows = query(_OF_THIS_HOST, **known)
        ended = [name for name, pid in rows if not psutil.pid_exists(pid)]
        if ended:
            execute("DELETE FROM tailrace_jobs_pulse WHERE name = ANY(%(names)s)", names=ended)
