"""The commands of Tailrace: `Command` in `commands/<name>.py` of its apps.

In a project they are the subcommands of one management command, `manage.py tailrace`: with names as
plain as `jobs` and `stats` they would else hide commands of the project. `tailrace` of the command
line runs them directly.
"""

import importlib
import pkgutil
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.apps import AppConfig, apps
from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.utils.module_loading import module_has_submodule

from tailrace.events.suggest import did_you_mean

PACKAGE = __name__.partition(".")[0]
LINE = 90
"""Letters of a command's help that the list shows at most."""


@dataclass(frozen=True, slots=True)
class Subcommand:
    """One command: its name, and the app that brings it."""

    name: str
    app: AppConfig

    def load(self) -> BaseCommand:
        """Import the command's module; return a new command."""
        module = importlib.import_module(f"{self.app.name}.commands.{self.name}")
        command: BaseCommand = module.Command()
        return command


def all_subcommands() -> dict[str, Subcommand]:
    """Return the commands by their names, app by app. Their modules are not imported.

    Only apps of this package have them: `commands` of another app is its own affair.
    """
    found: dict[str, Subcommand] = {}
    for app in apps.get_app_configs():
        if not app.name.startswith(f"{PACKAGE}.") or not module_has_submodule(
            app.module, "commands"
        ):
            continue
        package = importlib.import_module(f"{app.name}.commands")
        for module in pkgutil.iter_modules(package.__path__):
            if module.ispkg or module.name.startswith("_"):
                continue
            if module.name in found:
                first = found[module.name].app.name
                raise RuntimeError(f"{first} and {app.name} both have a command {module.name!r}")
            found[module.name] = Subcommand(module.name, app)
    return found


def call_subcommand(name: str, /, *words: Any, **options: Any) -> Any:
    """Run one of our commands from Python, as Django's call_command runs those of a project."""
    return call_command(all_subcommands()[name].load(), *words, **options)


def unknown(program: str, name: str, others: Iterable[str] = ()) -> str:
    """Return the message about a command that is none of ours, nor of `others`."""
    hint = did_you_mean(name, [*all_subcommands(), *others])
    return f"there is no command {name!r}{hint or ';'} `{program}` lists all"


def listing(program: str) -> str:
    """Return all commands with a line about each, app by app, for `program COMMAND`."""
    subcommands = all_subcommands().values()
    width = max((len(subcommand.name) for subcommand in subcommands), default=0)
    lines = [
        f"usage: {program} COMMAND …",
        "",
        f"`{program} COMMAND --help` describes one.",
    ]
    app = None
    for subcommand in subcommands:
        if subcommand.app is not app:
            app = subcommand.app
            lines += ["", str(app.name).removeprefix(f"{PACKAGE}.")]
        lines.append(f"  {subcommand.name.ljust(width)}  {_in_a_line(subcommand.load().help)}")
    return "\n".join(lines)


def _in_a_line(text: str) -> str:
    """Return the first sentence, or its beginning."""
    sentence = " ".join(text.split()).partition(". ")[0].removesuffix(".")
    return textwrap.shorten(sentence, LINE, placeholder=" …")
