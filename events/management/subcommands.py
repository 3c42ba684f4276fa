"""The commands of Tailrace: the class `Command` in `commands/<name>.py` or
`platform/commands/<name>.py` of its apps. In a project they are subcommands of `manage.py
tailrace`, so that short names such as `jobs` do not hide commands of the project. The program
`tailrace` runs them directly."""

import importlib
import pkgutil
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.apps import AppConfig, apps
from django.core.management import call_command
from django.core.management.base import BaseCommand

from tailrace.environment.discovery import find_module
from tailrace.environment.suggest import did_you_mean

PACKAGE = __name__.partition(".")[0]
LINE = 90
"""The maximum number of characters of a command's help in the list."""


@dataclass(frozen=True, slots=True)
class Subcommand:
    name: str
    app: AppConfig
    module: str

    def load(self) -> BaseCommand:
        module = importlib.import_module(self.module)
        command: BaseCommand = module.Command()
        return command


def all_subcommands() -> dict[str, Subcommand]:
    """Return the commands of Tailrace's apps by name, without importing their modules."""
    subcommands: dict[str, Subcommand] = {}
    for app in apps.get_app_configs():
        path = find_module(app, "commands") if app.name.startswith(f"{PACKAGE}.") else None
        if path is None:
            continue
        package = importlib.import_module(path)
        for module in pkgutil.iter_modules(package.__path__):
            if module.ispkg or module.name.startswith("_"):
                continue
            if module.name in subcommands:
                first = subcommands[module.name].app.name
                raise RuntimeError(f"{first} and {app.name} both have a command {module.name!r}")
            subcommands[module.name] = Subcommand(module.name, app, f"{path}.{module.name}")
    return subcommands


def call_subcommand(name: str, /, *words: Any, **options: Any) -> Any:
    return call_command(all_subcommands()[name].load(), *words, **options)


def unknown(program: str, name: str, others: Iterable[str] = ()) -> str:
    """Return the error message for an unknown command, with the nearest known name; `others` are
    more known names."""
    hint = did_you_mean(name, [*all_subcommands(), *others])
    return f"there is no command {name!r}{hint or ';'} `{program}` lists all"


def listing(program: str) -> str:
    """Return the usage of `program COMMAND`, with one line per command, grouped by app."""
    subcommands = all_subcommands().values()
    width = max((len(subcommand.name) for subcommand in subcommands), default=0)
    lines = [
        f"usage: {program} COMMAND …",
        "",
        f"`{program} COMMAND --help` describes a command.",
    ]
    app = None
    for subcommand in subcommands:
        if subcommand.app is not app:
            app = subcommand.app
            lines += ["", str(app.name).removeprefix(f"{PACKAGE}.")]
        lines.append(f"  {subcommand.name.ljust(width)}  {_summary(subcommand.load().help)}")
    return "\n".join(lines)


def _summary(text: str) -> str:
    """Return the first sentence, cut to LINE characters."""
    sentence = " ".join(text.split()).partition(". ")[0].removesuffix(".")
    return textwrap.shorten(sentence, LINE, placeholder=" …")
