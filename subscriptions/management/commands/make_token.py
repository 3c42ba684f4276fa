from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from subscriptions.management.users import active_user
from web import tokens


class Command(BaseCommand):
    help = "Create an API token for a user. It is printed only once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the user's login")
        parser.add_argument("--name", required=True, help="what the token is used for")
        parser.add_argument(
            "--scopes", required=True, help=f"separated by commas: {', '.join(tokens.scopes())}"
        )
        parser.add_argument("--days", type=float, help="lifetime; default: it never expires")

    def handle(self, *args: Any, **options: Any) -> None:
        user = active_user(options["user"])
        scopes = [part.strip() for part in options["scopes"].split(",") if part.strip()]
        try:
            _, token = tokens.make(user, options["name"], scopes, options["days"])
        except tokens.WrongToken as error:
            raise CommandError(str(error)) from None
        self.stdout.write(token)
