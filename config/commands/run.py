import logging
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections

from tailrace.config.devserver import processes
from tailrace.config.devserver.terminal import Terminal
from tailrace.config.startup import setup
from tailrace.events.management.subcommands import call_subcommand

LOG_FILE = settings.VAR_DIR / "output.log"
ANY_HOST = ("", "0.0.0.0", "::")  # noqa: S104 - compared with, not listened on


class Command(BaseCommand):
    help = (
        "Set up and run the web server, a worker, beat, Flower and the processes of the apps, in"
        " the foreground. Ctrl-C stops them all. Their logs are in var/output.log."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--logs", action="store_true", help="print all lines of the processes, too"
        )

    def handle(self, *args: Any, logs: bool, **options: Any) -> None:
        """Run until Ctrl-C, with exit status 0, or until a process ends, with its status."""
        if message := processes.port_in_use():
            raise CommandError(message)
        if not logs:
            logging.disable(logging.INFO)  # of this process
        self.stdout.write("Setting up ...")
        call_subcommand("setup", keep_password=settings.EMBEDDED.postgres, stdout=self.stdout)
        call_subcommand("seed_demo", stdout=self.stdout)
        self.stdout.write(f"Starting. The logs are in {LOG_FILE}.")
        self.stdout.flush()
        lines = [f"{name:<14}{text}" for name, text in (addresses() | accounts()).items()]
        connections.close_all()

        def print_lines(answers: bool) -> None:
            first = "Tailrace runs. Ctrl-C stops it."
            slow = f"The web server has not answered yet: see {LOG_FILE}."
            self.stdout.write("\n".join(["", first if answers else slow, "", *lines]))
            self.stdout.flush()

        host = "127.0.0.1" if settings.WEB_HOST in ANY_HOST else settings.WEB_HOST
        url = f"http://{host}:{settings.WEB_PORT}/healthz/live"
        sys.exit(processes.run_all(Terminal(LOG_FILE, url, print_lines, all_lines=logs)))


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


def accounts() -> dict[str, str]:
    """Return the users to sign in as, with the passwords that are known."""
    lines = {}
    if (password := setup.kept_password()) is not None:
        lines["Sign in"] = f"admin, password {password}"
    return lines | processes.app_accounts()
