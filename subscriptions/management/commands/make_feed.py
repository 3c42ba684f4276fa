from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from events.suggest import did_you_mean
from subscriptions.feeds import make_feed


class Command(BaseCommand):
    """Makes a feed and prints its address, the only time that it can be seen."""

    help = "Make a feed of what a user hears of by rss, and print its address once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the login")
        parser.add_argument("--title", default="Tailrace", help="what readers show")

    def handle(self, *args: Any, **options: Any) -> None:
        login = options["user"]
        user = User.objects.filter(username=login, is_active=True).first()
        if user is None:
            logins = User.objects.filter(is_active=True).values_list("username", flat=True)[:1000]
            raise CommandError(
                f"no active user has the login {login!r}{did_you_mean(login, logins)}"
            )
        _, address = make_feed(user, options["title"])
        self.stdout.write(address)
