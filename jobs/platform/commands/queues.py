from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tailrace.db.locks import Blocked
from tailrace.jobs.operations.pause import pause, resume
from tailrace.jobs.platform.commands._shared import queue_name, table
from tailrace.jobs.platform.inspection.display.formatting import ago, capped
from tailrace.jobs.platform.inspection.queue_states import queue_states
from tailrace.jobs.platform.inspection.queues import stats

MAX_COUNTED = 100_000


class Command(BaseCommand):
    help = "List the queues, or pause or resume one."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--pause", metavar="QUEUE", help="start no more jobs of this queue")
        parser.add_argument("--resume", metavar="QUEUE", help="start jobs of this queue again")

    def handle(self, *args: Any, **options: Any) -> None:
        for action, operation in (("pause", pause), ("resume", resume)):
            if name := options[action]:
                try:
                    changed = operation(queue_name(name), "manage.py")
                except Blocked as error:
                    raise CommandError(f"{name} could not be {action}d: {error}") from error
                self.stdout.write(f"{name}: {'' if changed else 'already '}{action}d")
                return
        header = ("queue", "state", "queued", "due", "running", "failed", "oldest due")
        queues = stats.queues(MAX_COUNTED)
        states = queue_states(queues)
        self.stdout.write(table(header, [_row(queue, states[queue.name]) for queue in queues]))


def _row(queue: stats.QueueStats, state: str) -> tuple[Any, ...]:
    counts = (queue.pending, queue.due, queue.running, queue.failed)
    oldest = ago(queue.oldest_due) if queue.oldest_due else None
    return (queue.name, state, *(capped(count, MAX_COUNTED) for count in counts), oldest)
