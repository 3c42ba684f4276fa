import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from events.models import Event
from jobs.inspection.formatting import ago
from jobs.inspection.state_labels import state_label
from jobs.management.plain_text import fields, table
from jobs.models import Job


class Command(BaseCommand):
    help = "List events; show one with its jobs."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        show = actions.add_parser("show", help="show one event, its jobs and the events it caused")
        show.add_argument("id", type=int)
        listing = actions.add_parser("list", help="list events, newest first")
        listing.add_argument("--type")
        listing.add_argument("--subject", help="start of the subject")
        listing.add_argument(
            "--flagged",
            action="store_true",
            help="only events with a problem that is not acknowledged",
        )
        listing.add_argument("--limit", type=int, default=50)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["action"] == "list":
            self._list(options)
            return
        event = Event.objects.filter(pk=options["id"]).first()
        if event is None:
            raise CommandError(f"there is no event {options['id']}")
        self.stdout.write(self._describe(event))

    def _list(self, options: dict[str, Any]) -> None:
        events = Event.objects.flagged() if options["flagged"] else Event.objects.all()
        if options["type"]:
            events = events.filter(type=options["type"])
        if options["subject"]:
            events = events.filter(subject__startswith=options["subject"])
        rows = [
            (
                event.pk,
                event.type,
                event.subject,
                event.actor,
                ago(event.recorded_at),
                event.problem,
            )
            for event in events.order_by("-id")[: options["limit"]]
        ]
        self.stdout.write(table(("id", "type", "subject", "actor", "recorded", "problem"), rows))

    def _describe(self, event: Event) -> str:
        names = (
            "id", "type", "schema_version", "subject", "actor", "source", "source_id",
            "occurred_at", "recorded_at", "cause_id", "trace_parent", "problem",
        )  # fmt: skip
        text = fields((name, getattr(event, name)) for name in names)
        text += f"\npayload  {json.dumps(event.payload, ensure_ascii=False)}\n"
        jobs = Job.objects.filter(event=event).order_by("id")
        rows = [
            (job.pk, job.handler, job.routing_key or None, state_label(job), job.attempt,
             ago(job.finished_at or job.due_at), job.error[:80] or None)
            for job in jobs
        ]  # fmt: skip
        header = ("job", "queue", "routing key", "state", "attempt", "when", "error")
        text += "\n" + (table(header, rows) if rows else "no jobs")
        if effects := Event.objects.filter(cause=event).order_by("id")[:50]:
            caused = [(effect.pk, effect.type, effect.subject) for effect in effects]
            text += "\n\n" + table(("caused", "type", "subject"), caused)
        return text
