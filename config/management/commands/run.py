"""manage.py run: the whole platform in the foreground, for a laptop."""

import sys
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from config import processes, settings

SAMPLE_PROJECT = "home:alice"


class Command(BaseCommand):
    """Prepares everything, says where everything is, and runs it until Ctrl-C."""

    help = "Set up and run web, worker, beat, Flower and a sample backend. Ctrl-C stops them all."

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it; the exit status is 0 after Ctrl-C, else that of the process that ended."""
        taken = processes.taken_port()
        if taken:
            raise CommandError(taken)
        call_command("setup", stdout=self.stdout)
        if processes.with_sample_backend():
            call_command("seed_demo", stdout=self.stdout)
        for line in self.places():
            self.stdout.write(line)
        self.stdout.flush()
        connections.close_all()
        sys.exit(processes.run_all())

    def places(self) -> list[str]:
        """The five lines that a newcomer needs."""
        web = settings.PUBLIC_URL
        account = settings.VAR_DIR / "flower_auth"
        if settings.FLOWER_BASIC_AUTH:
            who = "user and password: FLOWER_BASIC_AUTH"
        else:
            who = f"user:password in {account}"
        buses = ", ".join(url.removeprefix("file://") for url in settings.BUS_BACKENDS.values())
        mails = "by EMAIL_URL" if settings.EMAIL_URL else settings.EMAIL_FILE_PATH
        return [
            f"Overview  {web}/",
            f"Admin     {web}/admin/",
            f"Flower    http://127.0.0.1:{settings.FLOWER_PORT}/ ({who})",
            f"Feed      {web}/feeds/projects/{SAMPLE_PROJECT}.atom",
            f"Output    mails: {mails}, bus: {buses}",
        ]
