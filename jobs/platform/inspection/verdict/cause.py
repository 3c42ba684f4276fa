"""Causes, and the checks that find them. A module in `causes/` adds a check."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import count
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import User

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.environment.conf import PLATFORM, on_platform
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.maintenance.ticking.losses import FORGOTTEN_SECONDS
from tailrace.jobs.platform.inspection.queues import pools, stats
from tailrace.jobs.platform.inspection.queues.pools import RunningJob, WorkerPool
from tailrace.jobs.platform.inspection.queues.stats import Worker
from tailrace.jobs.platform.inspection.queues.unserved import (
    STALLED_SECONDS,
    UnservedQueue,
    unserved,
)
from tailrace.jobs.platform.inspection.storage.connections import Connections, connections


@dataclass(frozen=True, slots=True)
class Link:
    """A link to a page about a cause: the view's name, its arguments, its permissions (separated by
    spaces) and its query string."""

    label: str
    view: str
    args: tuple[str | int, ...] = ()
    permission: str = ""
    query: str = ""


@dataclass(frozen=True, slots=True)
class Button:
    """A button that fixes a cause, for users with the permission."""

    label: str
    permission: str
    confirm: str = ""
    """What the user has to confirm first; empty: nothing."""


def admin_link(label: str, page: str, *args: str | int) -> Link:
    """Return a link to a page of the admin of jobs, such as `queue_change`."""
    permission = f"tailrace_jobs.view_{page.partition('_')[0]}"
    return Link(label, f"admin:tailrace_jobs_{page}", args, permission)


def worker_command(workers: Iterable[Worker] = ()) -> str:
    """Return a shell command that starts a worker, with a name that none of these workers has. In
    another project, its Celery application is expected in the package of its settings."""
    app = PLATFORM if on_platform() else str(settings.SETTINGS_MODULE).partition(".")[0]
    used = {worker.name.partition("@")[0] for worker in workers}
    number = next(number for number in count(1) if f"worker{number}" not in used)
    return f"celery -A {app} worker -n worker{number}@%h"


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
    action: Link | None = None
    """A page that fixes it, after a question."""
    private: str = ""
    """A name or an error that only users with the check's permission may read."""
    quoted: str = ""
    """A text that may quote payloads, for users with the permission to see them."""
    fades: bool = False
    """Whether it is old and gets no worse: it comes after all other causes."""
    code: str = ""
    """The code of the check that found it, e.g. `queue_paused`; set by the verdict."""


_INCIDENTS = f"""
SELECT substr(name, 1, position(':' IN name) - 1), substr(name, position(':' IN name) + 1), at, by,
  facts::text::json
FROM tailrace_jobs_pulse
WHERE (name LIKE 'thread:%%' OR name LIKE 'loss:%%') AND at > {clock.NOW}
  - make_interval(secs => coalesce((facts ->> 'seconds')::float8, {FORGOTTEN_SECONDS}))
ORDER BY at DESC LIMIT 100
"""


@dataclass(frozen=True, slots=True)
class Incident:
    """A recent failure of a thread (`thread_failures`) or loss of a worker (`losses`)."""

    kind: str
    """`thread` or `loss`."""
    name: str
    at: datetime
    process: str
    facts: dict[str, Any]

    @property
    def since(self) -> datetime:
        return datetime.fromisoformat(self.facts["since"])

    @property
    def times(self) -> int:
        return int(self.facts["times"])


class Facts:
    """The data of one verdict. Each property is read when a check first uses it."""

    @cached_property
    def tick(self) -> stats.LastTick:
        return stats.last_tick()

    @cached_property
    def unserved(self) -> list[UnservedQueue]:
        return unserved(STALLED_SECONDS)

    @cached_property
    def connections(self) -> Connections:
        return connections()

    @cached_property
    def _pools(self) -> tuple[list[WorkerPool], list[RunningJob]]:
        return pools.pools()

    @property
    def all_pools(self) -> list[WorkerPool]:
        """The live workers, and the silent ones of the last hour."""
        return self._pools[0]

    @property
    def running(self) -> list[RunningJob]:
        """The running jobs of all processes."""
        workers, others = self._pools
        return [*others, *(job for pool in workers for job in pool.jobs)]

    @cached_property
    def incidents(self) -> list[Incident]:
        return [Incident(*row) for row in query(_INCIDENTS)]

    @cached_property
    def pools(self) -> list[WorkerPool]:
        """The live workers."""
        return [pool for pool in self.all_pools if pool.worker.age <= stats.WORKER_SECONDS]

    @property
    def workers(self) -> list[Worker]:
        return [pool.worker for pool in self.all_pools]

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
    button: ClassVar[Button | None] = None
    """The button that fixes a cause with a subject, if any."""

    def causes(self, facts: Facts) -> list[Cause]:
        """Return the current causes of this kind."""
        raise NotImplementedError

    def mend(self, user: User, subject: str) -> str:
        """Fix the cause with this subject, record that in the audit log, and return a message."""
        raise NotImplementedError
