from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from events import clock
from subscriptions.models import EventSubscription
from subscriptions.retro import CannotTell, retro


class Command(BaseCommand):
    help = (
        "Deliver what a subscription should have brought, of the last days. Without --deliver it"
        " says how much that would be, and does nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("subscription", type=int, help="the row's id")
        parser.add_argument("--days", type=float, default=7.0)
        parser.add_argument("--deliver", action="store_true", help="do it")

    def handle(self, *args: Any, **options: Any) -> None:
        row = EventSubscription.objects.filter(pk=options["subscription"]).first()
        if row is None:
            raise CommandError(f"there is no subscription {options['subscription']}")
        if options["days"] <= 0:
            raise CommandError(f"--days {options['days']:g} is not above 0")
        since = clock.now() - timedelta(days=options["days"])
        try:
            found = retro(row, since, deliver=options["deliver"])
        except CannotTell as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{row}")
        self.stdout.write(
            f"{found.events} events; {found.known} deliveries were made before,"
            f" {found.owed} {'are owed now' if options['deliver'] else 'would be owed'}"
        )
