"""show: tables and pages of plain text, for the commands."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from events import clock


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return aligned columns; numbers to the right, None as a dash."""
    lines = [list(header)] + [["-" if cell is None else str(cell) for cell in row] for row in rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(header))]
    return "\n".join(
        "  ".join(_pad(cell, width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _pad(cell: str, width: int) -> str:
    number = cell.removesuffix("+").replace(".", "", 1).isdigit()
    return cell.rjust(width) if number else cell.ljust(width)


def capped(count: int, cap: int) -> str:
    return f"{count}+" if count >= cap else str(count)


def ago(at: datetime | None) -> str | None:
    """Return how long ago (`12 s`, `3 min`), or in how long (`in 2 h`), a time is."""
    if at is None:
        return None
    seconds = (clock.now() - at).total_seconds()
    text = duration(abs(seconds))
    return text if seconds >= 0 else f"in {text}"


def duration(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"


def fields(pairs: Iterable[tuple[str, Any]]) -> str:
    """Return one `name  value` line per pair whose value is not empty."""
    shown = [(name, value) for name, value in pairs if value not in (None, "", [], {})]
    width = max((len(name) for name, _value in shown), default=0)
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in shown)
