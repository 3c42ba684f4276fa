from typing import Any

from django.core.management.base import BaseCommand

from tailrace.config.devserver import processes


class Command(BaseCommand):
    help = "Create the sample data that `manage.py run` shows. Safe to repeat."

    def handle(self, *args: Any, **options: Any) -> None:
        for process in processes.app_processes():
            if line := process.prepare():
                self.stdout.write(line)
