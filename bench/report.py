"""Print the figures of a benchmark, and whether its targets are reached."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

LEFT_OUT = "LEFT OUT"


@dataclass(frozen=True)
class Row:
    """One figure of a system under test (`side`)."""

    bench: str
    side: str
    work: str
    value: float
    unit: str
    note: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def left_out(cls, bench: str, side: str, work: str, lacking: Sequence[str]) -> Self:
        """The row of what cannot be measured, as these packages are not installed."""
        verb = "is" if len(lacking) == 1 else "are"
        note = f"{LEFT_OUT}: {' and '.join(lacking)} {verb} not installed"
        return cls(bench, side, work, 0, "", note)

    @property
    def figure(self) -> str:
        return "–" if self.note.startswith(LEFT_OUT) else f"{shown(self.value)} {self.unit}"


@dataclass(frozen=True)
class Target:
    """The limit that a figure must reach; `better` is "more" or "less"."""

    text: str
    value: float
    limit: float
    better: str = "more"

    @property
    def holds(self) -> bool:
        return self.value >= self.limit if self.better == "more" else self.value <= self.limit

    def __str__(self) -> str:
        sign = "≥" if self.better == "more" else "≤"
        verdict = "holds" if self.holds else "MISSED"
        return f"{verdict}: {self.text}: {shown(self.value)} ({sign} {shown(self.limit)})"


def shown(value: float) -> str:
    """A figure with three digits that count."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def table(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table."""
    lines = ["| side | work | figure | note |", "|---|---|---:|---|"]
    lines += [f"| {r.side} | {r.work} | {r.figure} | {r.note} |" for r in rows]
    return "\n".join(lines)


def find(rows: Sequence[Row], side: str, work: str) -> float:
    """The value of that side's row for that work; 0 if it was not measured."""
    return next((r.value for r in rows if (r.side, r.work) == (side, work)), 0.0)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of the values lie; 0 of none."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0.0


def write(
    path: Path, where: dict[str, Any], rows: Sequence[Row], targets: Sequence[Target]
) -> None:
    """Write all of it as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    report = {
        "where": where,
        "rows": [asdict(row) for row in rows],
        "targets": [asdict(bar) | {"holds": bar.holds} for bar in targets],
    }
    path.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n")
