from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from tailrace.web.accounts.security import second_factor


class Command(BaseCommand):
    help = "Remove the second factor and the recovery codes of a user who has lost them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the user's login")

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["user"]
        user = User.objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"there is no user {name!r}")
        factor = second_factor.of(user)
        if factor is None:
            raise CommandError(f"{name} has no second factor")
        second_factor.remove(factor)
        self.stdout.write(f"{name} has no second factor any more.")
