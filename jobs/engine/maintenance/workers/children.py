"""The processes of a worker's pool: find the ones that died, and rescue their jobs at once."""

import os
import signal
from typing import Any

import structlog
from billiard.pool import EX_RECYCLE

from tailrace.jobs.engine.claiming.claim import process_name
from tailrace.jobs.engine.maintenance.ticking import rescue
from tailrace.jobs.runtime import shutdown

log = structlog.get_logger(__name__)


class Children:
    """The processes of a Celery pool, or of None. Used by one thread of the main process."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._known: dict[int, Any] = {}
        self._dead: dict[int, str] = {}
        """Processes whose jobs are not rescued yet, and how each ended."""

    def rescue_jobs_of_dead(self) -> None:
        """Rescue the jobs of the processes that died since the last call. If the database does not
        answer, the next call tries again."""
        # The pool of billiard, which Celery may replace; other kinds of pools have no processes.
        pool = getattr(self._pool, "_pool", None)
        processes = {each.pid: each for each in getattr(pool, "_pool", None) or ()}
        for pid, process in self._known.items():
            if pid not in processes and process.exitcode not in (os.EX_OK, EX_RECYCLE):
                self._dead[pid] = how_it_ended(process.exitcode)
        self._known = processes
        for pid, how in list(self._dead.items()):
            if pid not in processes:  # else a new process has its id, and the leases decide
                rescued = rescue.rescue_of_process(
                    process_name(pid), how, blamed=not shutdown.requested()
                )
                log.error("worker.process_died", process=pid, how=how, jobs=rescued)
            del self._dead[pid]


def how_it_ended(exitcode: int | None) -> str:
    """Return `was killed by signal 9 (SIGKILL)` or `ended with exit status 1`."""
    if exitcode is None or exitcode >= 0:
        return f"ended with exit status {exitcode}"
    try:
        return f"was killed by signal {-exitcode} ({signal.Signals(-exitcode).name})"
    except ValueError:
        return f"was killed by signal {-exitcode}"
