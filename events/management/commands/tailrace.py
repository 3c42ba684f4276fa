"""`manage.py tailrace COMMAND`: run Tailrace's commands in a project with commands of its own."""

import argparse
import os
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tailrace.events.management.subcommands import (
    all_subcommands,
    call_subcommand,
    listing,
    unknown,
)

HELP = ("-h", "--help", "help")
PASSED_OPTIONS = ("no_color", "force_color", "skip_checks")
"""Options that are passed to the subcommand when this command is called from Python."""


class Command(BaseCommand):
    """From Python, pass each word as an argument: call_command("tailrace", "jobs", "cancel", 7)."""

    help = "Run a command of Tailrace; without a name, list all commands."
    requires_system_checks = ()  # the subcommand runs the checks that it needs

    def run_from_argv(self, argv: list[str]) -> None:
        """Run the command whose name follows `tailrace`, like a command of manage.py."""
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
        passed = {key: options[key] for key in PASSED_OPTIONS if key in options}
        streams = {"stdout": self.stdout, "stderr": self.stderr}
        call_subcommand(name, *rest, **passed, **streams)
