from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from jobs.inspection import stats
from jobs.inspection.formatting import ago, capped
from jobs.management.arguments import queue_name
from jobs.management.plain_text import table
from jobs.operations.pause import pause, resume

MAX_COUNTED = 100_000


class Command(BaseCommand):
    help = "Show the queues; pause or resume one."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--pause", metavar="QUEUE", help="start no more jobs of this queue")
        parser.add_argument("--resume", metavar="QUEUE", help="start jobs of this queue again")

    def handle(self, *args: Any, **options: Any) -> None:
        for action, operation in (("pause", pause), ("resume", resume)):
            if name := options[action]:
                changed = operation(queue_name(name), "manage.py")
                self.stdout.write(f"{name}: {'' if changed else 'already '}{action}d")
                return
        header = ("queue", "queued", "due", "running", "failed", "oldest due", "paused", "awake")
        self.stdout.write(table(header, map(_row, stats.queues(MAX_COUNTED))))


def _row(queue: stats.QueueStats) -> tuple[Any, ...]:
    return (
        queue.name,
        capped(queue.pending, MAX_COUNTED),
        capped(queue.due, MAX_COUNTED),
        queue.running,
        capped(queue.failed, MAX_COUNTED),
        ago(queue.oldest_due) if queue.oldest_due else None,
        "paused" if queue.paused else "-",
        "retired" if queue.retired else "awake" if queue.awake else "-",
    )
