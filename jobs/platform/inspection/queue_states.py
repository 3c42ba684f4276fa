"""The state of a queue as one word, the same on all pages, in the commands and in the API."""

from collections.abc import Collection, Iterable

from tailrace.jobs.platform.inspection.queues.stats import QueueStats
from tailrace.jobs.platform.inspection.queues.unserved import STALLED_SECONDS, unserved

IDLE, WAITING, RUNNING = "idle", "waiting", "running"
PAUSED, UNSERVED, RETIRED = "paused", "unserved", "retired"
MEANINGS = {
    IDLE: "no job is due",
    WAITING: "jobs are due, and none is running",
    RUNNING: "jobs are running",
    PAUSED: "an operator has paused it, so no job starts",
    UNSERVED: "jobs are due, and no worker claims them",
    RETIRED: "its handler is no longer in the code",
}


def queue_state(queue: QueueStats, unserved: Collection[str]) -> str:
    """Return the state of a queue; `unserved` contains the names of unserved queues."""
    if queue.retired:
        return RETIRED
    if queue.paused:
        return PAUSED
    if queue.name in unserved:
        return UNSERVED
    if queue.running:
        return RUNNING
    return WAITING if queue.due else IDLE


def queue_states(queues: Iterable[QueueStats]) -> dict[str, str]:
    unserved_names = {queue.name for queue in unserved(STALLED_SECONDS) if not queue.running}
    return {queue.name: queue_state(queue, unserved_names) for queue in queues}
