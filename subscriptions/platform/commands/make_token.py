from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from tailrace.environment.types import split
from tailrace.subscriptions.platform.commands._users import active_user
from tailrace.web.accounts import tokens


class Command(BaseCommand):
    help = "Create an API token for a user. The token is printed only once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the user's login")
        parser.add_argument("--name", required=True, help="the purpose of the token")
        parser.add_argument(
            "--scopes", required=True, help=f"separated by commas: {', '.join(tokens.scopes())}"
        )
        parser.add_argument(
            "--event-types",
            default="",
            help=f"with {tokens.RECORDS_EVENTS}: the event types and families that the token may"
            " record, separated by commas (manage.py event_catalog)",
        )
        parser.add_argument(
            "--event-source",
            default="",
            help=f"with {tokens.RECORDS_EVENTS}: the source of the token's events, such as /ci",
        )
        parser.add_argument("--days", type=float, help="lifetime; default: the token never expires")

    def handle(self, *args: Any, **options: Any) -> None:
        user = active_user(options["user"])
        try:
            with transaction.atomic():
                token, text = tokens.make(
                    user,
                    options["name"],
                    split(options["scopes"]),
                    options["days"],
                    event_types=split(options["event_types"]),
                    event_source=options["event_source"],
                )
                tokens.record_made(token)
        except tokens.WrongToken as error:
            raise CommandError(str(error)) from None
        self.stdout.write(text)
