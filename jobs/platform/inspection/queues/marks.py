"""What changed the course of the jobs: workers with new code, and queues that were paused. Both are
read from what there is now, so that nothing has to be recorded: a pause that is over has no mark.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tailrace.jobs.models import Queue
from tailrace.jobs.platform.inspection.queues import stats

MAX_MARKS = 10


@dataclass(frozen=True, slots=True)
class Mark:
    """A change, and since when it is in force."""

    at: datetime
    text: str


def marks(since: datetime) -> Sequence[Mark]:
    """Return the changes since then, the latest MAX_MARKS, oldest first."""
    changes = [*_deploys(since), *_pauses(since)]
    return sorted(changes, key=lambda mark: mark.at)[-MAX_MARKS:]


def _deploys(since: datetime) -> list[Mark]:
    """Return for each version of the code when the first worker that runs it was started."""
    first: dict[str, datetime] = {}
    for worker in stats.workers():
        if worker.code and worker.started_at:
            first[worker.code] = min(worker.started_at, first.get(worker.code, worker.started_at))
    return [
        Mark(at, f"workers started with code {code}") for code, at in first.items() if at >= since
    ]


def _pauses(since: datetime) -> list[Mark]:
    paused = Queue.objects.filter(paused_at__gte=since).order_by("-paused_at")
    rows = paused.values_list("paused_at", "name")[:MAX_MARKS]
    return [Mark(at, f"{name} paused") for at, name in rows if at is not None]
