from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from tailrace.environment.suggest import did_you_mean
from tailrace.web.accounts.deletion import DeletionRefused, delete_account, request_deletion


class Command(BaseCommand):
    help = "Delete a user's account with all of its personal data."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="the user's login")
        parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")

    def handle(self, *args: Any, **options: Any) -> None:
        login = options["user"]
        user = User.objects.filter(username=login).first()
        if user is None:
            names = User.objects.values_list("username", flat=True)[:1000]
            raise CommandError(f"no user has the login {login!r}{did_you_mean(login, names)}")
        if not options["yes"] and input(f"Type {login} to delete this account: ") != login:
            raise CommandError("nothing was deleted")
        try:
            request_deletion(user)
        except DeletionRefused as error:
            raise CommandError(str(error)) from None
        delete_account(user.pk)
        self.stdout.write(f"The account {login} and its data are deleted.")
