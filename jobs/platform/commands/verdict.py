import sys
from typing import Any

from django.core.management.base import BaseCommand

from tailrace.jobs.platform.inspection import verdict


class Command(BaseCommand):
    help = (
        "Show whether the system is healthy, or the causes that keep jobs from being done, worst"
        " first. Exit status: 1 if there is a cause."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        now = verdict.work_out()
        if now.healthy:
            self.stdout.write("Healthy")
            return
        for cause in now.causes:
            lines = [cause.words, cause.private, cause.quoted, cause.advice, cause.command]
            self.stdout.write("\n    ".join(line for line in lines if line))
        sys.exit(1)
