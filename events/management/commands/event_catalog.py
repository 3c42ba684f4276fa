import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from events.catalog import document
from events.errors import UnknownEventType
from events.types import get_type


class Command(BaseCommand):
    help = "Print all event types as an AsyncAPI 3 document, or one type's JSON Schema."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("type", nargs="?", help="print this type's JSON Schema alone")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["type"]:
            try:
                wanted: Any = get_type(options["type"]).Payload.model_json_schema()
            except UnknownEventType as error:
                raise CommandError(str(error)) from None
        else:
            wanted = document()
        self.stdout.write(json.dumps(wanted, indent=2, ensure_ascii=False))
