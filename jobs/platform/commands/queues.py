from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tailrace.db import clock
from tailrace.db.locks import Blocked
from tailrace.jobs.operations.pause import MAX_REASON, pause, resume
from tailrace.jobs.platform.commands._shared import queue_name, table
from tailrace.jobs.platform.inspection.display.formatting import ago, capped
from tailrace.jobs.platform.inspection.queue_states import queue_states
from tailrace.jobs.platform.inspection.queues import stats

MAX_COUNTED = 100_000
MAX_HOURS = 24 * 366


class Command(BaseCommand):
    help = "List the queues, or pause or resume one."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--pause", metavar="QUEUE", help="start no more jobs of this queue")
        parser.add_argument("--reason", default="", help="why it is paused; all staff can read it")
        parser.add_argument(
            "--hours", type=float, help="resume it after this time; otherwise with --resume"
        )
        parser.add_argument("--resume", metavar="QUEUE", help="start jobs of this queue again")

    def handle(self, *args: Any, **options: Any) -> None:
        hours = options["hours"]
        if hours is not None and not 0 < hours <= MAX_HOURS:
            raise CommandError(f"--hours: must be above 0, and at most {MAX_HOURS}")
        until = clock.now() + timedelta(hours=hours) if hours else None
        if len(options["reason"]) > MAX_REASON:
            raise CommandError(f"--reason: must have at most {MAX_REASON} characters")
        more = {"reason": options["reason"], "until": until}
        for action, operation, with_end in (("pause", pause, more), ("resume", resume, {})):
            if name := options[action]:
                try:
                    changed = operation(queue_name(name), "manage.py", **with_end)
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
