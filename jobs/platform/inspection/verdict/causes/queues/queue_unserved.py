from tailrace.jobs.platform.inspection.display.formatting import count
from tailrace.jobs.platform.inspection.queues.unserved import PATIENCE_SECONDS, UnservedQueue
from tailrace.jobs.platform.inspection.verdict.cause import (
    Cause,
    Check,
    Facts,
    admin_link,
    worker_command,
)

MAX_NAMED = 5


class QueueUnserved(Check):
    """Queues with due jobs and no progress, unless the reason is a full pool."""

    code = "queue_unserved"
    rank = 20

    def causes(self, facts: Facts) -> list[Cause]:
        queues = [queue for queue in facts.unserved if queue.name not in facts.behind_full_pools]
        names = [queue.name for queue in queues if not queue.workers]
        stuck = [queue for queue in queues if queue.workers and queue.stalled > PATIENCE_SECONDS]
        causes = [_without_worker(names, worker_command(facts.workers))] if names else []
        return causes + [_stuck(queue) for queue in stuck[:MAX_NAMED]]


def _without_worker(names: list[str], command: str) -> Cause:
    shown = ", ".join(names[:MAX_NAMED])
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    verb = "has" if len(names) == 1 else "have"
    return Cause(
        f"{count(len(names), 'queue')} {verb} due jobs and no worker: {shown}{more}.",
        subject=names[0],
        advice="Start a worker for these queues.",
        command=f"{command} -Q {','.join(names)}",
        link=admin_link(f"Queue {names[0]}", "queue_change", names[0]),
    )


def _stuck(queue: UnservedQueue) -> Cause:
    return Cause(
        f"Due jobs of {queue.name} make no progress: {queue.reason}.",
        subject=queue.name,
        link=admin_link(f"Queue {queue.name}", "queue_change", queue.name),
    )
