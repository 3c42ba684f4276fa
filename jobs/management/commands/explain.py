import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from jobs import explain
from jobs.show import duration, table


class Command(BaseCommand):
    help = "Say why a job runs or does not run now, and where its time went."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("job", type=int, metavar="JOB", help="the job's id")
        parser.add_argument("--json", action="store_true", help="for programs")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = explain.explain(options["job"])
        except explain.UnknownJob as error:
            raise CommandError(f"{error}; `manage.py jobs list` shows the newest") from None
        if options["json"]:
            self.stdout.write(json.dumps(found.as_json(), indent=2, ensure_ascii=False))
            return
        self.stdout.write(_text(found))


def _text(found: explain.Explanation) -> str:
    lines = [f"job {found.job} ({found.handler}) is {found.state}", found.summary]
    lines += [f"- {reason.words}" for reason in found.others]
    if found.spans:
        rows = [
            (span.what, f"{span.begun:%Y-%m-%d %H:%M:%S}", duration(span.seconds), span.why[:100])
            for span in found.spans
        ]
        lines += ["", table(("part", "begun (UTC)", "took", "why"), rows), "", found.unrecorded]
    return "\n".join(lines)
