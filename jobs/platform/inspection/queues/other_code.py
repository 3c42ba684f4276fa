"""Find workers that run other code than this machine has on its disk."""

from collections.abc import Iterable
from datetime import UTC, datetime

import psutil

from tailrace.jobs.engine.maintenance.workers.code_version import CodeVersion
from tailrace.jobs.platform.inspection.queues.stats import Worker


def workers_of_other_code(workers: Iterable[Worker], code: CodeVersion) -> list[Worker]:
    """Return the workers that run other code than `code`, as far as they report their code."""
    return [worker for worker in workers if worker.code and worker.code != code.digest]


def differs_since(worker: Worker, code: CodeVersion) -> datetime:
    """Return since when this worker has certainly run other code than `code`: the latest start of
    code, machine and worker. The files of a container may be months older than its start."""
    times = (code.here_since, machine_started_at(), worker.started_at)
    return max(time for time in times if time is not None)


def machine_started_at() -> datetime:
    """Return when this machine or container was started."""
    try:
        started = psutil.Process(1).create_time()
    except psutil.Error:  # the first process may be hidden
        started = psutil.boot_time()
    return datetime.fromtimestamp(started, UTC)
