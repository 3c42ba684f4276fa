"""Workers of this machine that were killed with their processes: give their jobs back at once.

Leases decide about workers of other machines and of other containers, because a process id has a
meaning only where it was given: see `machine`.
"""

import os
import socket
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import structlog

from tailrace.db.query import query
from tailrace.jobs.engine.claiming.claim import START, process_name
from tailrace.jobs.engine.maintenance.ticking import rescue

log = structlog.get_logger(__name__)

_WORKERS = """
SELECT facts ->> 'claims', (facts ->> 'pid')::int, facts ->> 'began' FROM tailrace_jobs_pulse
WHERE name LIKE 'worker:%%' AND facts ->> 'machine' = %(machine)s AND facts ->> 'host' = %(host)s
"""
_PROCESSES = """
SELECT DISTINCT left(split_part(worker, ':', 3), %(length)s), split_part(worker, ':', 2)::int
FROM tailrace_jobs_live
WHERE state = 'running' AND split_part(worker, ':', 1) = %(host)s
  AND left(split_part(worker, ':', 3), %(length)s) = ANY(%(starts)s)
"""


@cache
def machine() -> str:
    """Return an id of this machine since its boot and of this container's process ids, or "" if the
    system does not have both."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        return sha256(f"{boot} {os.readlink('/proc/self/ns/pid')}".encode()).hexdigest()[:16]
    except OSError:
        return ""


def facts() -> dict[str, Any]:
    """Return what a worker records of itself so that `rescue_jobs` recognizes its claims."""
    return {"machine": machine(), "claims": START, "began": began(os.getpid())}


def began(pid: int) -> str | None:
    """Return when a process began, in the kernel's ticks since the boot. It distinguishes processes
    that had the same id. Return "" if it is not known, and None if the process has ended."""
    try:
        os.kill(pid, 0)
        state, *columns = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except ProcessLookupError:
        return None
    except OSError:  # processes of other users may be hidden
        return ""
    return None if state in "ZX" else columns[18]


def rescue_jobs() -> int:
    """Rescue the jobs of workers of this machine whose process and whose child with the claim have
    ended; return how many jobs."""
    if not machine():
        return 0
    workers = query(_WORKERS, machine=machine(), host=socket.gethostname())
    starts = [start for start, pid, since in workers if _has_ended(pid, since)]
    return sum(map(_rescue, _lost_processes(starts))) if starts else 0


def _has_ended(pid: int, since: str) -> bool:
    now = began(pid)
    return now is None or ("" not in (now, since) and now != since)


def _lost_processes(starts: list[str]) -> Iterable[str]:
    """Return the beginnings of the names of claims whose process has ended, of these workers."""
    rows = query(_PROCESSES, host=socket.gethostname(), starts=starts, length=len(START))
    return [process_name(pid, start) for start, pid in rows if began(pid) is None]


def _rescue(process: str) -> int:
    rescued = rescue.rescue_of_lost_worker(process)
    log.error("worker.lost", process=process, jobs=rescued)
    return rescued
