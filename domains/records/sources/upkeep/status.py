"""The status of sources: the next pull, the delay, and the states of their depositions."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tailrace.db.query import database_now, query
from tailrace.db.sql.arrays import number_array
from tailrace.domains.records.models import Source
from tailrace.domains.records.sources.requests import schedule_name
from tailrace.jobs.models import Schedule

PATIENCE = timedelta(minutes=5)
"""A source is late if it was due at least this long ago and has not been read since."""
COUNTED = 1000
"""Maximum number of a source's latest depositions that are counted by state."""

_COUNTS = f"""
SELECT wanted, state, count(*) FROM unnest(%(ids)s::bigint[]) AS wanted, LATERAL (
  SELECT d.state FROM tailrace_records_deposition d
  WHERE d.source_id = wanted ORDER BY d.id DESC LIMIT {COUNTED}
) latest
GROUP BY wanted, state
"""


@dataclass(frozen=True, slots=True)
class SourceStatus:
    source: Source
    next_pull_at: datetime | None = None
    """None: the source is paused."""
    late_seconds: int | None = None
    """Seconds since the source was due without being read; None: it is in time, or paused."""
    depositions: dict[str, int] = field(default_factory=dict)
    """The number of the latest COUNTED depositions in each state."""

    @property
    def count(self) -> int:
        return sum(self.depositions.values())


def statuses(sources: Sequence[Source]) -> list[SourceStatus]:
    """Return the status of each source, with a constant number of statements."""
    now = database_now()
    names = {schedule_name(source.pk): source.pk for source in sources}
    rows = Schedule.objects.filter(name__in=list(names), enabled=True)
    schedule_of = {names[row.name]: row for row in rows}
    counts: dict[int, dict[str, int]] = {source.pk: {} for source in sources}
    for id, state, count in query(_COUNTS, ids=number_array(counts)):
        counts[id][state] = count
    return [
        _status(source, schedule_of.get(source.pk), counts[source.pk], now) for source in sources
    ]


def _status(
    source: Source, schedule: Schedule | None, counts: dict[str, int], now: datetime
) -> SourceStatus:
    if schedule is None:
        return SourceStatus(source, depositions=counts)
    due = schedule.next_run_at if schedule.next_run_at <= now else schedule.last_run_at
    is_read = due is None or (source.last_read_at is not None and source.last_read_at >= due)
    is_late = due is not None and not is_read and now - due >= PATIENCE
    late_seconds = int((now - due).total_seconds()) if due and is_late else None
    return SourceStatus(source, schedule.next_run_at, late_seconds, counts)
