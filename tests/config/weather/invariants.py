from collections.abc import Sequence
from typing import Any

from tailrace.jobs.runtime.invariant import Invariant


class StationsReport(Invariant):
    """Every station has reported in the last hour."""

    name = "weather.stations_report"

    def find(self) -> Sequence[Any]:
        return []
