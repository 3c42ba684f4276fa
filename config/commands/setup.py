from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser

from tailrace.config.startup import setup


class Command(BaseCommand):
    help = (
        "Set up an installation: migrate the database, create private folders, a secret key, an"
        " admin user and Flower's password. Safe to repeat. The admin's password is printed only"
        " once."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--keep-password",
            action="store_true",
            help="keep the admin's password in var/admin_password instead of printing it",
        )

    def handle(self, *args: Any, keep_password: bool, **options: Any) -> None:
        setup.make_folders()
        setup.flower_auth()
        call_command("migrate", interactive=False, verbosity=0)
        password = setup.make_admin(keep_password=keep_password)
        if password and not keep_password:
            self.stdout.write(f"Admin user: admin, password: {password} (shown only now)")
