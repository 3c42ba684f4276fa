from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tailrace.subscriptions.channels.rss.feeds import TooManyFeeds, make_feed
from tailrace.subscriptions.platform.commands._users import active_user


class Command(BaseCommand):
    help = "Create a feed of a user's rss notifications. Its URL is printed only once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the user's login")
        parser.add_argument("--title", default="Tailrace", help="the title of the feed")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            _, address = make_feed(active_user(options["user"]), options["title"])
        except TooManyFeeds as error:
            raise CommandError(str(error)) from None
        self.stdout.write(address)
