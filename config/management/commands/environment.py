"""manage.py environment: the table of all environment variables."""

from typing import Any

from django.core.management.base import BaseCommand

from config.settings import env


def table() -> str:
    """The variables as a Markdown table, in the order of the settings."""
    lines = ["| variable | value | default | meaning |", "| --- | --- | --- | --- |"]
    for one in env.variables.values():
        default = f"`{one.default}`" if one.default else ""
        lines.append(f"| `{one.name}` | {one.kind} | {default} | {one.meaning} |")
    return "\n".join(lines)


class Command(BaseCommand):
    """Prints what docs/configuration.md holds."""

    help = "Print all environment variables with their defaults, as a Markdown table."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Print it."""
        self.stdout.write(table())
