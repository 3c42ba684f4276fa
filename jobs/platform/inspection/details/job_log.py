"""Read the log of a job: the lines that its handler wrote, by claim."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tailrace.jobs.models import LogLines
from tailrace.jobs.runtime.job_log import MAX_CLAIMS, MAX_LINES


@dataclass(frozen=True, slots=True)
class LogLine:
    number: int
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class Log:
    """The lines of one claim, oldest first; `left_out` counts earlier lines that are missing."""

    claim_no: int
    lines: Sequence[LogLine]
    left_out: int = 0

    @property
    def last(self) -> int:
        return self.lines[-1].number if self.lines else 0


def claims_with_log(job: int) -> list[int]:
    """Return the numbers of the claims that have a log, newest first."""
    rows = LogLines.objects.filter(job=job).order_by("-claim_no").values_list("claim_no", flat=True)
    return list(rows.distinct()[: 2 * MAX_CLAIMS])


def log_of(job: int, claim_no: int, after: int = 0) -> Log:
    """Return the last lines of a claim with numbers above `after`, at most MAX_LINES."""
    rows = LogLines.objects.filter(job=job, claim_no=claim_no, last__gt=after)
    chunks = list(rows.order_by("-first").values_list("lines", flat=True)[:MAX_LINES])
    lines = [
        LogLine(number, datetime.fromisoformat(at), text)
        for chunk in reversed(chunks)
        for number, at, text in chunk
        if number > after
    ][-MAX_LINES:]
    left_out = lines[0].number - after - 1 if lines else 0
    return Log(claim_no, lines, left_out)
