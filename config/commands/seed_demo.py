from typing import Any

from django.core.management.base import BaseCommand

from tailrace.config.devserver import processes
from tailrace.events.subcommands import call_subcommand


class Command(BaseCommand):
    """It can be repeated: what is there already is not made again."""

    help = "Prepare what the apps show of themselves in `manage.py run`: samples for a newcomer."

    def handle(self, *args: Any, **options: Any) -> None:
        for process in processes.app_processes():
            if process.prepare:
                call_subcommand(process.prepare, stdout=self.stdout)
