"""The command line: `tailrace`, and manage.py in a checkout.

Starts the embedded engines for the commands that need them.
"""

import os
import sys
from typing import Literal

from django.core.checks import Tags, registry
from django.core.management import ManagementUtility
from django.core.management.base import BaseCommand
from django.db import NotSupportedError, OperationalError

# Commands that need no database. All others start the embedded engines.
WITHOUT_ENGINES = {
    *("", "check", "diffsettings", "environment", "help", "new_app", "new_handler", "version"),
}
# Commands that make the installation's key, and one that signs nothing. All others need a key.
OWN_KEYS: dict[str, Literal["created", "unused"]] = {
    "makemigrations": "unused",
    "run": "created",
    "setup": "created",
}
CHECKS_OF_DJANGO = {tag for name, tag in vars(Tags).items() if not name.startswith("_")}
"""Of code, which `manage.py check` and the tests run: those of URLs import all pages, the API and
the admin, and take half of the time that a command needs to start."""


class CommandLine(ManagementUtility):
    """Django's command line, whose commands run the checks of the apps: handlers and settings."""

    def fetch_command(self, subcommand: str) -> BaseCommand:
        command = super().fetch_command(subcommand)
        if command.requires_system_checks == "__all__":
            tags = registry.registry.tags_available() - CHECKS_OF_DJANGO
            command.requires_system_checks = sorted(tags)
        return command


def main() -> None:
    """Run one management command."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tailrace.config.settings")
    command = sys.argv[1] if len(sys.argv) > 1 else ""
    wants_help = {"-h", "--help", "--version"} & set(sys.argv[1:])
    if command not in WITHOUT_ENGINES and not wants_help:
        from tailrace.config import boot

        boot.start(OWN_KEYS.get(command, "needed"))
    try:
        CommandLine(sys.argv).execute()
    except (NotSupportedError, OperationalError) as error:
        from tailrace.config import boot

        boot.explain_server_error(error)
