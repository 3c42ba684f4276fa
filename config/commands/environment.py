from itertools import groupby
from typing import Any

from django.core.management.base import BaseCommand

from tailrace.config.settings import env
from tailrace.environment.settings import AppSettings

HEAD = ["| variable | value | default | meaning |", "| --- | --- | --- | --- |"]


def table() -> str:
    """Return the variables as Markdown, a table for each app, as in docs/reference/settings.md."""
    lines: list[str] = []
    for app, classes in groupby(env.settings, _app):
        lines += [*([""] if lines else []), f"## {app}", "", *HEAD]
        for variable in (each for cls in classes for each in cls.variables()):
            default = f"`{variable.default}`" if variable.default else ""
            lines.append(
                f"| `{variable.name}` | {variable.kind} | {default} | {variable.meaning} |"
            )
    return "\n".join(lines)


def _app(cls: type[AppSettings]) -> str:
    """Return the name of the class's app as people know it; the platform's own is no app."""
    names = cls.__module__.removeprefix("tailrace.").removeprefix("domains.").split(".")
    return "platform" if names[0] == "config" else names[0]


class Command(BaseCommand):
    help = "Print all environment variables with their defaults, as Markdown tables."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(table())
