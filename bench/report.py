"""What a benchmark says: rows, and bars that hold or are missed; never an exit status."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """One figure: which benchmark, whose side, what work, how much of what unit."""

    bench: str
    side: str
    work: str
    value: float
    unit: str
    note: str = ""
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Bar:
    """What a figure is held against. `better` says on which side of the limit it holds."""

    text: str
    value: float
    limit: float
    better: str = "more"

    @property
    def holds(self) -> bool:
        return self.value >= self.limit if self.better == "more" else self.value <= self.limit

    def __str__(self) -> str:
        sign = "≥" if self.better == "more" else "≤"
        said = "holds" if self.holds else "MISSED"
        return f"{said}: {self.text}: {shown(self.value)} ({sign} {shown(self.limit)})"


def shown(value: float) -> str:
    """A figure with three digits that count."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    lines = ["| side | work | figure | note |", "|---|---|---:|---|"]
    lines += [f"| {r.side} | {r.work} | {shown(r.value)} {r.unit} | {r.note} |" for r in rows]
    return "\n".join(lines)


def find(rows: Sequence[Row], side: str, work: str) -> float:
    """The value of that side's row for that work; 0 if it was not measured."""
    return next((r.value for r in rows if (r.side, r.work) == (side, work)), 0.0)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of the values lie; 0 of none."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0.0


def write(path: Path, where: dict[str, Any], rows: Sequence[Row], bars: Sequence[Bar]) -> None:
    """Write all of it as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    told = {
        "where": where,
        "rows": [asdict(row) for row in rows],
        "bars": [asdict(bar) | {"holds": bar.holds} for bar in bars],
    }
    path.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")
