"""`manage.py tailrace COMMAND`: all commands of Tailrace, in a project that has others, too."""

import argparse
import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tailrace.events.subcommands import all_subcommands, call_subcommand, listing, unknown

HELP = ("-h", "--help", "help")
HANDED_ON = ("no_color", "force_color", "skip_checks")
"""Options of this command that its commands get, too, when it is called from Python."""


class Command(BaseCommand):
    """From Python, all that follows is words: call_command("tailrace", "jobs", "cancel", "7")."""

    help = "Run a command of Tailrace; list them if none is named."
    requires_system_checks = ()  # the command that is run makes those that it needs

    def run_from_argv(self, argv: list[str]) -> None:
        """Run the command named after `tailrace` as if it were one of manage.py's."""
        program, words = f"{os.path.basename(argv[0])} {argv[1]}", argv[2:]
        if words and words[0] == "help" and words[1:]:
            words = [words[1], "--help"]
        if not words or words[0] in HELP:
            self.stdout.write(listing(program))
        elif words[0] in all_subcommands():
            all_subcommands()[words[0]].load().run_from_argv([program, *words])
        else:
            self.stderr.write(f"{program}: {unknown(program, words[0])}")
            raise SystemExit(1)

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND …")

    def handle(self, *args: Any, words: list[str], **options: Any) -> None:
        if not words or words[0] in HELP:
            self.stdout.write(listing("manage.py tailrace"))
            return
        name, *rest = words
        if name not in all_subcommands():
            raise CommandError(unknown("manage.py tailrace", name))
        handed_on = {key: options[key] for key in HANDED_ON if key in options}
        streams = {"stdout": self.stdout, "stderr": self.stderr}
        call_subcommand(name, *rest, **handed_on, **streams)
