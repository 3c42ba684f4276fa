from typing import Any

from django.core.management.base import BaseCommand

from tailrace.config.settings import env


def table() -> str:
    """Return the variables as a Markdown table, app by app, as in docs/reference/settings.md."""
    lines = ["| variable | value | default | meaning |", "| --- | --- | --- | --- |"]
    for variable in env.variables:
        default = f"`{variable.default}`" if variable.default else ""
        lines.append(f"| `{variable.name}` | {variable.kind} | {default} | {variable.meaning} |")
    return "\n".join(lines)


class Command(BaseCommand):
    help = "Print all environment variables with their defaults, as a Markdown table."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(table())
