"""Causes, and the checks that find them. A module in `causes/` adds a check."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import ClassVar

from django.conf import settings
from django.contrib.auth.models import User

from tailrace.environment.conf import PLATFORM, on_platform
from tailrace.jobs.engine import registry
from tailrace.jobs.platform.inspection.queues import pools, stats
from tailrace.jobs.platform.inspection.queues.pools import WorkerPool
from tailrace.jobs.platform.inspection.queues.unserved import (
    STALLED_SECONDS,
    UnservedQueue,
    unserved,
)


@dataclass(frozen=True, slots=True)
class Link:
    """A link to a page about a cause: the view's name, its arguments and its permission."""

    label: str
    view: str
    args: tuple[str | int, ...] = ()
    permission: str = ""


def admin_link(label: str, page: str, *args: str | int) -> Link:
    """Return a link to a page of the admin of jobs, such as `queue_change`."""
    permission = f"tailrace_jobs.view_{page.partition('_')[0]}"
    return Link(label, f"admin:tailrace_jobs_{page}", args, permission)


def worker_command(name: str = "worker1@%h") -> str:
    """Return a shell command that starts a worker with this name. In another project, its Celery
    application is expected in the package of its settings."""
    app = PLATFORM if on_platform() else str(settings.SETTINGS_MODULE).partition(".")[0]
    return f"celery -A {app} worker -n {name}"


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause that keeps jobs from being done."""

    words: str
    """One sentence with figures, which all staff may read."""
    subject: str = ""
    """The queue, schedule or destination that the cause is about; passed to `Check.mend`."""
    since: datetime | None = None
    advice: str = ""
    """What to do, if no button fixes it."""
    command: str = ""
    """A shell command that fixes it."""
    link: Link | None = None
    private: str = ""
    """A name or an error that only users with the check's permission may read."""
    code: str = ""
    """The code of the check that found it, e.g. `queue_paused`; set by the verdict."""


class Facts:
    """The data of one verdict. Each property is read when a check first uses it."""

    @cached_property
    def tick(self) -> stats.LastTick:
        return stats.last_tick()

    @cached_property
    def unserved(self) -> list[UnservedQueue]:
        return unserved(STALLED_SECONDS)

    @cached_property
    def pools(self) -> list[WorkerPool]:
        workers, _jobs_without_worker = pools.pools()
        return workers

    @cached_property
    def behind_full_pools(self) -> dict[str, list[WorkerPool]]:
        """The workers of each queue whose workers are all full, by queue name."""
        serving: dict[str, list[WorkerPool]] = {}
        for pool in self.pools:
            for name in pool.worker.queues:
                serving.setdefault(name, []).append(pool)
        full = {
            name: workers for name, workers in serving.items() if all(pool.full for pool in workers)
        }
        shared = {name: each.worker_queue for name, each in registry.all_handlers().items()}
        return full | {name: full[queue] for name, queue in shared.items() if queue in full}


class Check:
    """Finds the causes of one kind with bounded reads, and may fix them by a button."""

    code: ClassVar[str] = ""
    rank: ClassVar[int] = 50
    """Causes of a lower rank come first."""
    permission: ClassVar[str] = ""
    """The permission to read `Cause.private`; empty: all staff."""
    button: ClassVar[str] = ""
    """The label of the button that fixes a cause; empty: no button."""
    button_permission: ClassVar[str] = ""

    def causes(self, facts: Facts) -> list[Cause]:
        """Return the current causes of this kind."""
        raise NotImplementedError

    def mend(self, user: User, subject: str) -> str:
        """Fix the cause with this subject, record that in the audit log, and return a message."""
        raise NotImplementedError
