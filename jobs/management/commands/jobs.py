import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.dateparse import parse_datetime
from django.utils.timezone import is_naive, make_aware

from events import clock
from events.suggest import did_you_mean
from jobs import operate
from jobs.models import Job, Queue
from jobs.models.job import JobQuerySet
from jobs.show import ago, fields, table
from jobs.states import State

BATCH = 1000

OPERATIONS: dict[str, tuple[Callable[..., operate.Done], tuple[str, ...]]] = {
    "retry": (operate.retry_now, (State.PENDING,)),
    "cancel": (operate.cancel, (State.WAITING, State.PENDING, State.RUNNING)),
    "replay": (operate.replay, (State.FAILED,)),
}
"""Per action: what does it, and the states that it takes jobs from when none is named by id."""


class Command(BaseCommand):
    help = "List and show jobs; retry, cancel or replay them, one by one or by filter."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        listing = actions.add_parser("list", help="list jobs, the newest first")
        self._add_filters(listing)
        listing.add_argument("--limit", type=int, default=50)
        show = actions.add_parser("show", help="show all that is known of one job")
        show.add_argument("id", type=int)
        for action, text in (
            ("retry", "make pending jobs that wait for a later try due now"),
            ("cancel", "cancel unstarted jobs, ask running ones to stop"),
            ("replay", "put failed (by id also cancelled or skipped) jobs back to pending"),
        ):
            moving = actions.add_parser(action, help=text)
            moving.add_argument("ids", nargs="*", type=int, metavar="ID")
            self._add_filters(moving)
            moving.add_argument("--dry-run", action="store_true", help="only say how many")

    def _add_filters(self, parser: CommandParser) -> None:
        parser.add_argument("--queue", help="jobs of this queue")
        parser.add_argument("--state", choices=State.values)
        parser.add_argument(
            "--failed-since",
            metavar="WHEN",
            help="failed since a time (2026-11-21T08:00) or for a duration (2h, 30m, 1d)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["action"] == "list":
            self._list(self._filtered(options), options["limit"])
        elif options["action"] == "show":
            self._show(options["id"])
        else:
            self._operate(options)

    def _list(self, jobs: JobQuerySet, limit: int) -> None:
        rows = [
            (job.pk, job.handler, job.state, f"{job.attempt}", ago(job.due_at), job.event_id,
             job.routing_key or None, job.error[:60] or None)
            for job in jobs.order_by("-id")[:limit]
        ]  # fmt: skip
        header = ("id", "queue", "state", "attempt", "due", "event", "routing key", "error")
        self.stdout.write(table(header, rows))

    def _show(self, id: int) -> None:
        job = Job.objects.filter(pk=id).select_related("event").first()
        if job is None:
            raise CommandError(f"there is no job {id}")
        self.stdout.write(describe(job))

    def _operate(self, options: dict[str, Any]) -> None:
        action = options["action"]
        operation, states = OPERATIONS[action]
        ids = options["ids"]
        if not ids:
            if not (options["queue"] or options["failed_since"] or options["state"]):
                raise CommandError(f"name jobs by id, or a filter (--queue …), to {action}")
            jobs = self._filtered(options)
            ids = jobs if options["state"] else jobs.filter(state__in=states)
            ids = list(ids.order_by("id").values_list("id", flat=True))
        if options["dry_run"]:
            self.stdout.write(f"{len(ids)} jobs would be taken to {action}; nothing was changed")
            return
        self._report(action, [operation(part, by="manage.py") for part in _parts(ids)])

    def _report(self, action: str, parts: Sequence[operate.Done]) -> None:
        done = sum(len(part.ids) for part in parts)
        past = {"retry": "due now", "cancel": "cancelled", "replay": "back to pending"}[action]
        self.stdout.write(f"{done} jobs are {past}")
        if asked := sum(len(part.asked) for part in parts):
            self.stdout.write(f"{asked} running jobs were asked to stop")
        for part in parts:
            for id, reason in part.refused.items():
                self.stdout.write(f"job {id} was left alone: {reason}")

    def _filtered(self, options: dict[str, Any]) -> JobQuerySet:
        jobs = Job.objects.all()
        if queue := options["queue"]:
            names = list(Queue.objects.values_list("name", flat=True))
            if queue not in names and not jobs.filter(handler=queue).exists():
                raise CommandError(f"no queue is called {queue!r}{did_you_mean(queue, names)}")
            jobs = jobs.filter(handler=queue)
        if options["state"]:
            jobs = jobs.filter(state=options["state"])
        if options["failed_since"]:
            since = _since(options["failed_since"])
            jobs = jobs.filter(state=State.FAILED, finished_at__gte=since)
        return jobs


def describe(job: Job) -> str:
    """Return all that is known of a job, as text: facts, payload, attempts."""
    text = fields(
        (name, getattr(job, name))
        for name in (
            "id", "handler", "state", "event_id", "routing_key", "lane", "priority", "unique_key",
            "attempt", "claim_no", "created_at", "due_at", "started_at", "finished_at",
            "lease_until", "worker", "after_id", "schedule_id", "slot", "progress_done",
            "progress_total", "progress_note", "error",
        )
    )  # fmt: skip
    for name in ("payload", "result"):
        if (value := getattr(job, name)) is not None:
            text += f"\n{name}  {json.dumps(value, ensure_ascii=False)}"
    for attempt in job.attempts.order_by("claim_no"):
        text += (
            f"\n\nclaim {attempt.claim_no}: {attempt.outcome} {ago(attempt.finished_at)} ago"
            f" by {attempt.worker}\n{attempt.error_class} {attempt.message}\n{attempt.traceback}"
        ).rstrip()
    return text


def _parts(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(ids), BATCH):
        yield ids[start : start + BATCH]


UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def _since(text: str) -> datetime:
    if text[-1:] in UNITS and text[:-1].isdigit():
        return clock.now() - timedelta(seconds=int(text[:-1]) * UNITS[text[-1]])
    try:
        at = parse_datetime(text)
    except ValueError:
        at = None
    if at is None:
        raise CommandError(
            f"--failed-since {text!r} is neither a time (2026-11-21T08:00) nor a duration (2h, 1d)"
        )
    return make_aware(at) if is_naive(at) else at
