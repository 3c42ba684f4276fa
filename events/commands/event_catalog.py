import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tailrace.events.catalog import asyncapi
from tailrace.events.errors import UnknownEventType
from tailrace.events.types import get_type


class Command(BaseCommand):
    help = "Print all event types as an AsyncAPI 3 document, or the JSON Schema of one type."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("type", nargs="?", help="print only the JSON Schema of this type")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["type"]:
            try:
                document: Any = get_type(options["type"]).Payload.model_json_schema()
            except UnknownEventType as error:
                raise CommandError(str(error)) from None
        else:
            document = asyncapi.document()
        self.stdout.write(json.dumps(document, indent=2, ensure_ascii=False))
