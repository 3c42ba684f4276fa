"""manage.py setup: everything an installation needs before its processes start."""

from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from config import setup


class Command(BaseCommand):
    """Migrates, makes folders, a secret key, an admin user and Flower's password. Repeatable."""

    help = "Prepare the database and the folders; print the admin's password once, when it is made."

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it."""
        setup.make_folders()
        setup.secret_key()
        setup.flower_auth()
        call_command("migrate", interactive=False, verbosity=0)
        password = setup.make_admin()
        if password:
            self.stdout.write(f"Admin user: admin, password: {password} (shown only now)")
