import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tailrace.jobs.platform.commands._shared import table
from tailrace.jobs.platform.inspection.display.formatting import duration
from tailrace.jobs.platform.inspection.explain.explanation import Explanation, JobNotFound, explain


class Command(BaseCommand):
    help = "Explain why a job runs or does not run now, and how its time was spent."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("job", type=int, metavar="JOB", help="the job's id")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            explanation = explain(options["job"])
        except JobNotFound as error:
            raise CommandError(f"{error}; `manage.py jobs list` shows the newest jobs") from None
        if options["json"]:
            self.stdout.write(json.dumps(explanation.as_json(), indent=2, ensure_ascii=False))
        else:
            self.stdout.write(_as_text(explanation))


def _as_text(explanation: Explanation) -> str:
    head = f"job {explanation.job} ({explanation.handler}) is {explanation.label}"
    lines = [head, explanation.summary]
    lines += [f"- {reason.words}" for reason in explanation.details]
    if explanation.spans:
        rows = [
            (span.what, f"{span.begun:%Y-%m-%d %H:%M:%S}", duration(span.seconds), span.why[:100])
            for span in explanation.spans
        ]
        spans = table(("part", "start (UTC)", "took", "why"), rows)
        lines += ["", spans, "", explanation.not_recorded]
    return "\n".join(lines)
