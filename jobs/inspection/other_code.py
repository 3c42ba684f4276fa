"""Workers whose code is not what this machine has on its disk, and since when that is certain."""

from collections.abc import Iterable
from datetime import UTC, datetime

import psutil

from tailrace.jobs.inspection.stats import Worker
from tailrace.jobs.maintenance.code_version import CodeVersion


def of_other_code(workers: Iterable[Worker], code: CodeVersion) -> list[Worker]:
    """Return those that run other code than this; what a worker does not tell is not other."""
    return [worker for worker in workers if worker.code and worker.code != code.digest]


def differs_since(worker: Worker, code: CodeVersion) -> datetime:
    """Return since when a worker of other code and this code have been there together.

    A container that starts now may have files that are months old, so its start counts, too.
    """
    times = (code.here_since, machine_started_at(), worker.started_at)
    return max(time for time in times if time is not None)


def machine_started_at() -> datetime:
    """Return when this machine or container was started."""
    try:
        started = psutil.Process(1).create_time()
    except psutil.Error:  # the first process may be out of sight
        started = psutil.boot_time()
    return datetime.fromtimestamp(started, UTC)
