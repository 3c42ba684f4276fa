from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from tailrace.config.scaffold.names import ScaffoldError, refuse_installed
from tailrace.config.scaffold.new_handler import create_handler


class Command(BaseCommand):
    help = (
        "Add a handler to an app, the event type that it handles if there is none of that name, and"
        " a test. What exists stays as it is."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="app.name, such as shop.send_receipt: also its queue")
        parser.add_argument("--on", required=True, help="the event type, such as shop.order_paid")

    def handle(self, *args: Any, name: str, on: str, **options: Any) -> None:
        base = Path(settings.BASE_DIR)
        try:
            refuse_installed()
            files = create_handler(base, name, on)
        except ScaffoldError as error:
            raise CommandError(str(error)) from None
        for path in files:
            self.stdout.write(str(path.relative_to(base)))
        self.stdout.write(
            "Next: write what the event contains and what the handler does. `make run` takes it up"
            " at once; elsewhere, run `manage.py migrate` and start the workers again."
        )
