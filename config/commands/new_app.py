from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from tailrace.config.commands.scaffold.names import ScaffoldError, refuse_installed
from tailrace.config.commands.scaffold.new_app import create_app


class Command(BaseCommand):
    help = (
        "Create an app in domains/, with its files and a folder of tests, and add it to the"
        " installed apps. Existing files are not overwritten."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="such as shop")

    def handle(self, *args: Any, name: str, **options: Any) -> None:
        base = Path(settings.BASE_DIR)
        try:
            refuse_installed()
            files = create_app(base, name)
        except ScaffoldError as error:
            raise CommandError(str(error)) from None
        for path in files:
            self.stdout.write(str(path.relative_to(base)))
        self.stdout.write(
            f"Next: manage.py new_handler {name}.do_something --on {name}.something_happened"
        )
