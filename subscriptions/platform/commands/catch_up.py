from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tailrace.subscriptions.models import EventSubscription
from tailrace.subscriptions.notifications.notify.catch_up import catch_up, days_ago


class Command(BaseCommand):
    help = (
        "Deliver recent events that match a subscription and were not delivered."
        " Without --deliver, only count them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("subscription", type=int, help="the subscription's id")
        parser.add_argument("--days", default="7", help="the number of days to go back")
        parser.add_argument("--deliver", action="store_true", help="enqueue the deliveries")

    def handle(self, *args: Any, **options: Any) -> None:
        subscription = EventSubscription.objects.filter(pk=options["subscription"]).first()
        if subscription is None:
            raise CommandError(f"there is no subscription {options['subscription']}")
        try:
            result = catch_up(subscription, days_ago(options["days"]), deliver=options["deliver"])
        except ValueError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{subscription}")
        self.stdout.write(
            f"{result.events} events: {result.delivered} already delivered,"
            f" {result.missing} {'enqueued' if options['deliver'] else 'missing'}"
        )
