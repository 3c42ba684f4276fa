from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from events.suggest import did_you_mean
from jobs import numbers, operate
from jobs.models import Queue
from jobs.show import ago, capped, table

CAP = 100_000


class Command(BaseCommand):
    help = "Show how the queues stand; pause or resume one."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--pause", metavar="QUEUE", help="stop claims of this queue")
        parser.add_argument("--resume", metavar="QUEUE", help="let its claims go on")

    def handle(self, *args: Any, **options: Any) -> None:
        for move, change in (("pause", operate.pause), ("resume", operate.resume)):
            if name := options[move]:
                changed = change(self._known(name), "manage.py")
                self.stdout.write(f"{name}: {move}d" if changed else f"{name}: was {move}d already")
                return
        rows = [self._row(queue) for queue in numbers.queues(CAP)]
        header = ("queue", "pending", "due", "running", "failed", "oldest due", "paused", "awake")
        self.stdout.write(table(header, rows))

    def _known(self, name: str) -> str:
        names = list(Queue.objects.values_list("name", flat=True))
        if name not in names:
            raise CommandError(f"no queue is called {name!r}{did_you_mean(name, names)}")
        return name

    def _row(self, queue: numbers.QueueNumbers) -> tuple[Any, ...]:
        return (
            queue.name,
            capped(queue.pending, CAP),
            capped(queue.due, CAP),
            queue.running,
            capped(queue.failed, CAP),
            ago(queue.oldest_due),
            "paused" if queue.paused else "-",
            "gone" if queue.retired else "awake" if queue.awake else "-",
        )
