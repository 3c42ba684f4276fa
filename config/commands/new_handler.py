from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from tailrace.config.commands.scaffold.names import ScaffoldError, refuse_installed
from tailrace.config.commands.scaffold.new_handler import create_handler


class Command(BaseCommand):
    help = (
        "Add a handler to an app, its event type if that does not exist, and a test. Existing code"
        " is not changed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "name", help="app.name, such as shop.send_receipt; also the name of its queue"
        )
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
            "Next: write the payload of the event type and the code of the handler. `make run`"
            " loads them at once; elsewhere, run `manage.py migrate` and restart the workers."
        )
