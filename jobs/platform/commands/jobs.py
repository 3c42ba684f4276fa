import json
from collections.abc import Callable, Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Q

from tailrace.db.locks import Blocked
from tailrace.db.query import database_now
from tailrace.jobs.models import Job
from tailrace.jobs.models.job import JobQuerySet
from tailrace.jobs.operations import OperationResult
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.operations.replay import replay
from tailrace.jobs.operations.retry import retry_now
from tailrace.jobs.platform.commands._shared import fields, queue_name, table
from tailrace.jobs.platform.inspection.display.formatting import ago, state_label
from tailrace.jobs.platform.inspection.search.terms import time_of
from tailrace.jobs.runtime.states import LIVE, State

BATCH = 1000

OPERATIONS: dict[str, tuple[Callable[..., OperationResult], tuple[str, ...]]] = {
    "retry": (retry_now, (State.PENDING,)),
    "cancel": (cancel, LIVE),
    "replay": (replay, (State.FAILED,)),
}
"""The operation of each action, and the states that it selects if the filter has no state."""


PENDING = ("queued", "scheduled", "retry scheduled")
"""The states that people see of pending jobs."""


class Command(BaseCommand):
    help = "List and show jobs; retry, cancel or replay jobs by id or by filter."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        listing = actions.add_parser("list", help="list jobs, newest first")
        self._add_filters(listing)
        listing.add_argument("--limit", type=int, default=50)
        show = actions.add_parser("show", help="show one job with its attempts")
        show.add_argument("id", type=int)
        for action, text in (
            ("retry", "run jobs now that are scheduled for later"),
            ("cancel", "cancel unstarted jobs, and request running jobs to stop"),
            ("replay", "run failed jobs again (by id, cancelled and skipped jobs, too)"),
        ):
            operation = actions.add_parser(action, help=text)
            operation.add_argument("ids", nargs="*", type=int, metavar="ID")
            self._add_filters(operation)
            operation.add_argument("--dry-run", action="store_true", help="only count the jobs")

    def _add_filters(self, parser: CommandParser) -> None:
        parser.add_argument("--queue", help="only jobs of this queue")
        parser.add_argument("--flow", type=int, metavar="ID", help="only jobs of this flow")
        parser.add_argument(
            "--state",
            choices=[*State.values, *PENDING],
            help="pending: queued or scheduled",
        )
        parser.add_argument(
            "--failed-since",
            metavar="WHEN",
            help="only jobs that failed since a time (2026-11-21T08:00) or in the last 30m, 2h, 1d",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["action"] == "list":
            self._list(self._filtered(options), options["limit"])
        elif options["action"] == "show":
            if (job := Job.objects.filter(pk=options["id"]).first()) is None:
                raise CommandError(f"there is no job {options['id']}")
            self.stdout.write(describe(job))
        else:
            self._operate(options)

    def _list(self, jobs: JobQuerySet, limit: int) -> None:
        rows = [
            (job.pk, job.handler, state_label(job), job.attempt, ago(job.due_at), job.event_id,
             job.routing_key or None, job.error[:60] or None)
            for job in jobs.order_by("-id")[:limit]
        ]  # fmt: skip
        header = ("id", "queue", "state", "attempt", "due", "event", "routing key", "error")
        self.stdout.write(table(header, rows))

    def _operate(self, options: dict[str, Any]) -> None:
        action = options["action"]
        operation, states = OPERATIONS[action]
        ids = options["ids"]
        if not ids:
            filters = ("queue", "flow", "failed_since", "state")
            if not any(options[name] for name in filters):
                raise CommandError(f"{action} needs job ids or a filter such as --queue")
            jobs = self._filtered(options)
            ids = jobs if options["state"] else jobs.filter(state__in=states)
            ids = list(ids.order_by("id").values_list("id", flat=True))
        if options["dry_run"]:
            self.stdout.write(f"Dry run: {action} would change {len(ids)} jobs.")
            return
        batches = [ids[start : start + BATCH] for start in range(0, len(ids), BATCH)]
        self._report(action, [_apply(operation, batch) for batch in batches])

    def _report(self, action: str, results: Sequence[OperationResult]) -> None:
        changed = sum(len(result.changed) for result in results)
        past = {"retry": "due now", "cancel": "cancelled", "replay": "queued again"}[action]
        self.stdout.write(f"Jobs {past}: {changed}")
        if stopping := sum(len(result.stop_requested) for result in results):
            self.stdout.write(f"Running jobs requested to stop: {stopping}")
        for result in results:
            for id, reason in result.refused.items():
                self.stdout.write(f"Job {id} was not changed: {reason}")

    def _filtered(self, options: dict[str, Any]) -> JobQuerySet:
        jobs = Job.objects.all()
        if queue := options["queue"]:
            jobs = jobs.filter(handler=queue)
            if not jobs.exists():
                queue_name(queue)
        if options["flow"]:
            jobs = jobs.filter(flow_id=options["flow"])
        if options["state"]:
            jobs = jobs.filter(_has_state(options["state"]))
        if options["failed_since"]:
            if (since := time_of(options["failed_since"])) is None:
                raise CommandError(
                    f"--failed-since {options['failed_since']!r} is neither a time"
                    " (2026-11-21T08:00) nor a duration (2h, 1d)"
                )
            jobs = jobs.filter(state=State.FAILED, finished_at__gte=since)
        return jobs


def _has_state(word: str) -> Q:
    """Return the condition for jobs in this state: a stored state, or a label such as `scheduled`
    (see `state_label`)."""
    if word not in PENDING:
        return Q(state=word)
    is_due, is_retry = Q(due_at__lte=database_now()), Q(attempt__gt=0)
    later = {"scheduled": ~is_due & ~is_retry, "retry scheduled": ~is_due & is_retry}
    return Q(state=State.PENDING) & later.get(word, is_due)


def _apply(operation: Callable[..., OperationResult], ids: Sequence[int]) -> OperationResult:
    try:
        return operation(ids, by="manage.py")
    except Blocked as error:
        return OperationResult(refused=dict.fromkeys(ids, str(error)))


def describe(job: Job) -> str:
    """Return a job as text: its fields, payload, result and attempts."""
    text = fields(
        (name, state_label(job) if name == "state" else getattr(job, name))
        for name in (
            "id", "handler", "state", "event_id", "routing_key", "lane", "priority", "unique_key",
            "merged", "attempt", "claim_no", "created_at", "due_at", "started_at", "finished_at",
            "lease_until", "worker", "after_id", "flow_id", "flow_name", "schedule_id", "slot",
            "progress_done", "progress_total", "progress_note", "error",
        )
    )  # fmt: skip
    for name in ("payload", "result"):
        if (value := getattr(job, name)) is not None:
            text += f"\n{name}  {json.dumps(value, ensure_ascii=False)}"
    for attempt in job.attempts.order_by("claim_no"):
        text += (
            f"\n\nclaim {attempt.claim_no}: {attempt.summary} {ago(attempt.finished_at)}"
            f" by {attempt.worker}\n{attempt.error_class} {attempt.message}\n{attempt.traceback}"
        ).rstrip()
    return text
