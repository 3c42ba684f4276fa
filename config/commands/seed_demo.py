from typing import Any

from django.core.management.base import BaseCommand

from tailrace.config.devserver import processes
from tailrace.events.subcommands import call_subcommand


class Command(BaseCommand):
    help = "Create the sample data that the apps show in `manage.py run`. Safe to repeat."

    def handle(self, *args: Any, **options: Any) -> None:
        for process in processes.app_processes():
            if process.prepare:
                call_subcommand(process.prepare, stdout=self.stdout)
