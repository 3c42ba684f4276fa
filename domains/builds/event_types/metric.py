"""Measurements of events, which OBS sends to its bus in addition to the event's own message."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tailrace.net.sanitize import one_line

METRICS_KEY = "metrics"
"""The routing key of all metrics, without the namespace."""
_ESCAPED = re.compile(r"([,= \\])")


@dataclass(frozen=True, slots=True)
class Metric:
    """A measurement with its tags (text) and fields (whole numbers)."""

    measurement: str
    fields: Mapping[str, Any]
    tags: Mapping[str, Any]

    def line(self) -> str:
        """Return the measurement in InfluxDB's line protocol; empty if no field has a number.

        Like `to_metric` of OBS's Event::Base: `build,arch=x86_64,state=fail duration=300`. Unlike
        OBS, this escapes values and leaves out missing ones, as the protocol demands.
        """
        tags = [f",{key}={escaped}" for key, value in self.tags.items() if (escaped := _tag(value))]
        numbers = {key: whole_number(value) for key, value in self.fields.items()}
        fields = [f"{key}={number}" for key, number in numbers.items() if number is not None]
        return f"{self.measurement}{''.join(tags)} {','.join(fields)}" if fields else ""


def whole_number(value: Any) -> int | None:
    """Return the number or numeric text as an int; None for others, and if it is too long."""
    text = "" if isinstance(value, bool) else str(value)
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text, re.ASCII) else None


def difference(end: Any, start: Any) -> int | None:
    """Return end - start, or None if one of them is not a number."""
    last, first = whole_number(end), whole_number(start)
    return None if last is None or first is None else last - first


def word(value: Any) -> str:
    """Return the text in lower case with underscores, as OBS formats the reason of a build."""
    return re.sub(r"[^a-z0-9]+", "_", str(value or "").lower()).strip("_")[:100]


def _tag(value: Any) -> str:
    if value in (None, ""):
        return ""
    text = str(value).lower() if isinstance(value, bool) else one_line(str(value))
    return _ESCAPED.sub(r"\\\1", text)
