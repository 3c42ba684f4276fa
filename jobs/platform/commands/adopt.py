import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from celery import current_app
from django.core.management.base import BaseCommand, CommandError, CommandParser

from tailrace.jobs.operations.schedules import InvalidSchedule
from tailrace.jobs.platform.adopting.moving import move_schedules, move_schedules_back
from tailrace.jobs.platform.adopting.report import Report, as_json, report_on
from tailrace.jobs.platform.adopting.tasks import TaskReport, Verdict

HEADINGS = {
    Verdict.CHANGE_FIRST: "Tasks that need a change first",
    Verdict.STAYS: "Tasks that stay plain tasks of Celery",
    Verdict.MOVES: "Tasks that can move as they are",
    Verdict.DURABLE: "Tasks that are durable already",
}


class Command(BaseCommand):
    help = (
        "Show which Celery tasks can become durable as they are, which cannot and why, and what"
        " becomes of schedules. Without an option that moves schedules, it changes nothing. Exit"
        " status: 1 if something has to change first."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print JSON")
        text = "do not ask the running workers which queues they consume"
        parser.add_argument("--no-workers", action="store_true", help=text)
        actions = parser.add_mutually_exclusive_group()
        text = "move the schedules of durable tasks from beat; stop beat before, and start it after"
        actions.add_argument("--move-schedules", action="store_true", help=text)
        text = "undo that: remove the moved schedules, and let beat have them again"
        actions.add_argument("--move-schedules-back", action="store_true", help=text)

    def handle(self, *args: Any, **options: Any) -> None:
        if current_app.main == "default":
            raise CommandError(
                "no Celery application is loaded; import it in the project's __init__.py:"
                " from .celery import app as celery_app"
            )
        if options["move_schedules"]:
            self._move()
            return
        if options["move_schedules_back"]:
            names = move_schedules_back()
            self.stdout.write("\n".join([f"{len(names)} moved back to beat", *names]))
            return
        report = report_on(current_app, ask_workers=not options["no_workers"])
        if options["json"]:
            self.stdout.write(json.dumps(as_json(report), indent=2, ensure_ascii=False))
        else:
            self.stdout.write("\n".join(_lines(report)))
        if list(report.obstacles()):
            sys.exit(1)

    def _move(self) -> None:
        try:
            outcomes = move_schedules(
                current_app, report_on(current_app, ask_workers=False).schedules
            )
        except InvalidSchedule as error:
            raise CommandError(f"no schedule was moved: {error}") from error
        stay = [each for each in outcomes if each.problem]
        self.stdout.write(f"{len(outcomes) - len(stay)} moved, {len(stay)} stay in beat")
        for each in outcomes:
            self.stdout.write(f"  {each.name}: {each.problem or 'moved'}")


def _lines(report: Report) -> Iterator[str]:
    yield f"Celery application {report.app!r}: {len(report.tasks)} tasks"
    for verdict, heading in HEADINGS.items():
        yield from _section(heading, map(_task_line, report.of(verdict)))
    yield from _section(
        "Settings", (f"{each.name} = {each.value!r} {each.meaning}" for each in report.settings)
    )
    yield from _section("Queues", _queue_lines(report))
    yield from _section(
        "Schedules (--move-schedules moves those of durable tasks)",
        (
            "\n    ".join((f"{each.name} ({each.timing}): {each.becomes}", *each.notes))
            for each in report.schedules
        ),
    )
    yield ""
    if obstacles := list(report.obstacles()):
        yield f"Before they move: {'; '.join(obstacles)}."
    elif report.tasks and not report.of(Verdict.MOVES) and not report.of(Verdict.STAYS):
        yield "All of them are durable already."
    else:
        yield f'They can move: Celery({report.app!r}, task_cls="tailrace.celery:Task")'


def _section(heading: str, lines: Iterable[str]) -> Iterator[str]:
    shown = [f"  {line}" for line in lines]
    if shown:
        yield from ("", heading, *shown)


def _task_line(task: TaskReport) -> str:
    return "\n    ".join((task.name, *task.reasons, *task.notes))


def _queue_lines(report: Report) -> Iterator[str]:
    if report.workers is None:
        yield "not checked: no worker answered"
        return
    for queue in report.unserved_queues:
        yield f"{queue}: no worker that runs now consumes it"
