"""Format tables and lists of fields as plain text, and check arguments, for the commands."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.core.management.base import CommandError

from tailrace.environment.suggest import did_you_mean
from tailrace.jobs.models import Queue


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return aligned columns: numbers right-aligned, None as a dash."""
    lines = [list(header)] + [["-" if cell is None else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(_pad(cell, width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _pad(cell: str, width: int) -> str:
    number = cell.removesuffix("+").replace(".", "", 1).replace(",", "").isdigit()
    return cell.rjust(width) if number else cell.ljust(width)


def fields(pairs: Iterable[tuple[str, Any]]) -> str:
    """Return a line `name  value` for each pair whose value is not empty."""
    shown = [(name, value) for name, value in pairs if value not in (None, "", [], {})]
    width = max((len(name) for name, _value in shown), default=0)
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in shown)


def queue_name(name: str) -> str:
    """Return the name if a queue has it; raises CommandError with "did you mean"."""
    names = list(Queue.objects.values_list("name", flat=True))
    if name not in names:
        raise CommandError(f"no queue is called {name!r}{did_you_mean(name, names)}")
    return name
