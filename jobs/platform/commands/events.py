import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tailrace.jobs.platform.commands._shared import fields, table
from tailrace.jobs.platform.inspection.details.chain import Node, chain_of
from tailrace.jobs.platform.inspection.display.formatting import ago, state_label


class Command(BaseCommand):
    help = "List events, or show one event with its jobs."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        show = actions.add_parser("show", help="show one event with its jobs, causes and effects")
        show.add_argument("id", type=int)
        listing = actions.add_parser("list", help="list events, newest first")
        listing.add_argument("--type")
        listing.add_argument("--subject", help="start of the subject")
        text = "only events with an unacknowledged problem"
        listing.add_argument("--flagged", action="store_true", help=text)
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
            (row.pk, row.type, row.subject, row.actor, ago(row.recorded_at), row.problem)
            for row in events.order_by("-id")[: options["limit"]]
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
        chain = list(chain_of(event.pk, None).nodes())
        if len(chain) > 1:
            lines = [("  " * level + _line(node, event.pk)) for level, node in chain]
            text += "\n\nchain\n" + "\n".join(lines)
        return text


def _line(node: Node, event_id: int) -> str:
    """Return the line of an event in a chain; a star marks the event that is shown."""
    mark = "*" if node.event.pk == event_id else "-"
    more = ", more effects" if node.has_more_effects else ""
    name = " ".join(filter(None, (node.event.type, node.event.subject)))
    return f"{mark} {node.event.pk} {name}: {node.state}{more}"
