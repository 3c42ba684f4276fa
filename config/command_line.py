"""The command line: `tailrace`, and manage.py in a checkout.

Runs the commands of Tailrace and of Django. Starts the embedded engines if the command needs them.
"""

import os
import sys
from typing import Literal

from django.apps import apps
from django.core.checks import Tags, registry
from django.core.management import ManagementUtility, get_commands
from django.core.management.base import BaseCommand
from django.db import NotSupportedError, OperationalError, ProgrammingError

from tailrace.environment.folders import IS_CHECKOUT

# Commands that need no database. All others start the embedded engines.
WITHOUT_ENGINES = {
    *("", "check", "diffsettings", "environment", "help", "new_app", "new_handler", "version"),
}
# Commands that create the installation's key, and one that uses no key. All others need a key.
OWN_KEYS: dict[str, Literal["created", "unused"]] = {
    "makemigrations": "unused",
    "run": "created",
    "setup": "created",
}
CHECKS_OF_DJANGO = {tag for name, tag in vars(Tags).items() if not name.startswith("_")}
"""Tags of Django's checks of code, which only `manage.py check` and the tests run. The checks of
URLs import all pages, the API and the admin, and would double the start time of a command."""


class CommandLine(ManagementUtility):
    """Runs our commands, which take precedence, and Django's. Before a command, only our own checks
    run: handlers and settings."""

    def fetch_command(self, subcommand: str) -> BaseCommand:
        command = self._command(subcommand)
        if command.requires_system_checks == "__all__":
            tags = registry.registry.tags_available() - CHECKS_OF_DJANGO
            command.requires_system_checks = sorted(tags)
        return command

    def _command(self, subcommand: str) -> BaseCommand:
        """Return the command with this name, or end the process with a suggestion."""
        if apps.ready:
            from tailrace.events.management.subcommands import all_subcommands, unknown

            if subcommand in all_subcommands():
                return all_subcommands()[subcommand].load()
            if subcommand not in get_commands():
                message = unknown(self.prog_name, subcommand, get_commands())
                sys.exit(f"{self.prog_name}: {message}")
        return super().fetch_command(subcommand)

    def main_help_text(self, commands_only: bool = False) -> str:
        of_django = super().main_help_text(commands_only)
        if not apps.ready:
            return of_django
        from tailrace.events.management.subcommands import all_subcommands, listing

        if commands_only:
            return "\n".join([*all_subcommands(), of_django])
        # Leave out the part before the first heading: our list replaces it.
        rest = of_django.partition("Available subcommands:\n")[2]
        return f"{listing(self.prog_name)}\n\nCommands of Django:\n{rest}"


def main() -> None:
    """Run one command. If an optional package is missing, print what to install."""
    try:
        _run()
    except ModuleNotFoundError as error:
        if IS_CHECKOUT or (error.name or "").partition(".")[0] == "tailrace":
            raise
        sys.exit(f"tailrace: {error}; install it by `pip install 'tailrace[all]'`")


def _run() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tailrace.config.settings")
    # `tailrace tailrace verdict` also works, as `manage.py tailrace verdict` does in a project.
    words = [word for word in sys.argv[1:3] if word != "tailrace"]
    command = words[0] if words else ""
    wants_help = {"-h", "--help", "--version"} & set(sys.argv[1:])
    if command not in WITHOUT_ENGINES and not wants_help:
        from tailrace.config.startup import boot

        boot.start(OWN_KEYS.get(command, "needed"))
    if os.path.basename(sys.argv[0]) == "__main__.py":
        sys.argv[0] = "python -m tailrace"
    try:
        CommandLine(sys.argv).execute()
    except (NotSupportedError, OperationalError, ProgrammingError) as error:
        from tailrace.config.startup import boot

        boot.explain_server_error(error)
