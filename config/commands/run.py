import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from tailrace.config.devserver import processes
from tailrace.events.management.subcommands import call_subcommand


class Command(BaseCommand):
    help = (
        "Set up and run the web server, a worker, beat, Flower and the processes of the apps, in"
        " the foreground. Ctrl-C stops them all."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until Ctrl-C, with exit status 0, or until a process ends, with its status."""
        if message := processes.port_in_use():
            raise CommandError(message)
        call_subcommand("setup", stdout=self.stdout)
        call_subcommand("seed_demo", stdout=self.stdout)
        for name, address in addresses().items():
            self.stdout.write(f"{name:<14}{address}")
        self.stdout.flush()
        connections.close_all()
        sys.exit(processes.run_all())


def addresses() -> dict[str, str]:
    """Return the URLs and paths to print at the start, by title, including the apps' own."""
    password_file = settings.VAR_DIR / "flower_auth"
    account = (
        "user and password: FLOWER_BASIC_AUTH"
        if settings.FLOWER_BASIC_AUTH
        else f"user:password in {password_file}"
    )
    return {
        "Overview": f"{settings.PUBLIC_URL}/",
        "Admin": f"{settings.PUBLIC_URL}/admin/",
        "Flower": f"http://127.0.0.1:{settings.FLOWER_PORT}/ ({account})",
        "Subscriptions": f"{settings.PUBLIC_URL}/me/subscriptions",
        "API": f"{settings.PUBLIC_URL}/api/docs",
        "Mails": "sent by EMAIL_URL" if settings.EMAIL_URL else settings.EMAIL_FILE_PATH,
    } | processes.app_addresses()
