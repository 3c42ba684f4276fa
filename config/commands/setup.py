from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from tailrace.config.startup import setup


class Command(BaseCommand):
    help = (
        "Set up an installation: migrate the database, create private folders, a secret key, an"
        " admin user and Flower's password. Safe to repeat. The admin's password is printed only"
        " once."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        setup.make_folders()
        setup.flower_auth()
        call_command("migrate", interactive=False, verbosity=0)
        password = setup.make_admin()
        if password:
            self.stdout.write(f"Admin user: admin, password: {password} (shown only now)")
