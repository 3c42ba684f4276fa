from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from events.suggest import did_you_mean
from subscriptions import tokens


class Command(BaseCommand):
    """Makes a token of the API and prints it, the only time that it can be seen."""

    help = "Make a token with which a program acts for a user, and print it once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the login")
        parser.add_argument("--name", required=True, help="what it is for")
        parser.add_argument(
            "--scopes", required=True, help=f"by commas, of: {', '.join(tokens.SCOPES)}"
        )
        parser.add_argument("--days", type=float, help="until it expires; without: never")

    def handle(self, *args: Any, **options: Any) -> None:
        login = options["user"]
        user = User.objects.filter(username=login, is_active=True).first()
        if user is None:
            logins = User.objects.filter(is_active=True).values_list("username", flat=True)[:1000]
            raise CommandError(
                f"no active user has the login {login!r}{did_you_mean(login, logins)}"
            )
        scopes = [part.strip() for part in options["scopes"].split(",") if part.strip()]
        try:
            _, text = tokens.make(user, options["name"], scopes, options["days"])
        except tokens.WrongToken as error:
            raise CommandError(str(error)) from None
        self.stdout.write(text)
