"""Create the jobs of events that were recorded before their handler was deployed.

A handler with `backfill = seconds` gets jobs for events that are not older than that. Each event is
checked once. Events are checked in the order of the transactions that recorded them, up to the
oldest transaction that is still running, so that no event of a late commit is missed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tailrace.db import clock, connections
from tailrace.db.query import execute, query
from tailrace.events.publish import RECORDED, Recorded
from tailrace.events.types import all_types
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.inserting.fan_out import jobs_for
from tailrace.jobs.engine.inserting.insert import insert_jobs
from tailrace.jobs.engine.inserting.new_job import NewJob
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.handler import Handler

WINDOW = 20_000
"""Events of all types that one statement reads."""
WINDOWS = 10
"""Windows that one run reads."""
MARGIN_SECONDS = 86_400
"""A handler's first run begins this much before its backfill window, for long transactions."""


@dataclass(frozen=True, slots=True)
class _Position:
    """The last checked event: its transaction (0: from before they were recorded) and its id."""

    xact: int
    id: int


@dataclass(frozen=True, slots=True)
class _Window:
    """A window of events after a position."""

    last: _Position
    full: bool
    """Whether there may be more events after it."""
    wanted: int
    """How many events are of the handler's types and in its backfill window."""
    without_job: list[int]
    """The ids of the wanted events without a job of the handler."""


def handlers_behind() -> list[str]:
    """Return the names of handlers with events that lack a job. The position of each handler moves
    up to the first window with such an event."""
    return [handler.name for handler in _handlers() if _is_behind(handler)]


def _is_behind(handler: Handler) -> bool:
    for window in _windows(handler):
        if _missing_jobs(handler, window.without_job):
            return True
        if window.wanted or window.full:
            _move(handler, window.last)
    return False


def advance(name: str) -> int:
    """Create the missing jobs of the handler's next events; return how many were created."""
    handler = registry.get(name)
    created = 0
    with connections.atomic():
        for window in _windows(handler):
            created += len(insert_jobs(_missing_jobs(handler, window.without_job)).ids)
        _move(handler, window.last)
        if created:
            wake.on_commit({name})
    return created


def _windows(handler: Handler) -> Iterator[_Window]:
    """Yield the next windows of the handler, at most WINDOWS, at least one."""
    position = _position(handler)
    for _number in range(WINDOWS):
        window = _next_window(handler, position)
        yield window
        if not window.full:
            break
        position = window.last


def _missing_jobs(handler: Handler, events: list[int]) -> list[NewJob]:
    """Return the handler's jobs for these events, which have none."""
    rows = query(
        f"SELECT {RECORDED} FROM tailrace_events_event e WHERE e.id = ANY(%(ids)s) ORDER BY e.id",
        ids=events,
    )
    return [job for row in rows for job in jobs_for(Recorded.from_row(row), [handler])]


def _move(handler: Handler, position: _Position) -> None:
    execute(_MOVE, name=handler.name, xact=position.xact, id=position.id)


def _handlers() -> list[Handler]:
    return [h for h in registry.all_handlers().values() if h.backfill is not None and h.on]


# If the queue's row is locked, it is not updated: the next run checks these events again.
_MOVE = """
UPDATE tailrace_jobs_queue q SET backfilled_xact = %(xact)s, backfilled_to = %(id)s
FROM (SELECT name FROM tailrace_jobs_queue WHERE name = %(name)s FOR NO KEY UPDATE SKIP LOCKED) free
WHERE q.name = free.name
"""

_OLDEST_RUNNING = "pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
_OLD = "xact IS NULL AND id > %(id)s"
_NEW = f"(xact, id) > (%(xact)s, %(id)s) AND xact < {_OLDEST_RUNNING}"
_READ = f"""
WITH scanned AS MATERIALIZED (
  SELECT coalesce(xact, 0) AS xact, id,
         type = ANY(%(types)s) AND recorded_at > {clock.NOW} - make_interval(secs => %(backfill)s)
           AS wanted
  FROM tailrace_events_event WHERE {{where}} ORDER BY tailrace_events_event.xact, id
    LIMIT %(window)s
), lacking AS (
  SELECT id FROM scanned WHERE wanted AND NOT EXISTS (
    SELECT 1 FROM tailrace_jobs_job j WHERE j.event_id = scanned.id AND j.handler = %(name)s)
)
SELECT count(*), max(ARRAY[xact, id]), count(*) FILTER (WHERE wanted),
       (SELECT coalesce(array_agg(id), '{{{{}}}}') FROM lacking)
FROM scanned
"""


def _next_window(handler: Handler, after: _Position) -> _Window:
    if after.xact == 0:
        window = _read(handler, after, _OLD)
        if window.full or window.wanted:
            return _Window(window.last, True, window.wanted, window.without_job)
    return _read(handler, after, _NEW)


def _read(handler: Handler, after: _Position, where: str) -> _Window:
    [(size, last, wanted, without_job)] = query(
        _READ.format(where=where),
        xact=after.xact,
        id=after.id,
        window=WINDOW,
        types=[type.name for type in all_types() if issubclass(type, handler.event_types())],
        backfill=handler.backfill,
        name=handler.name,
    )
    return _Window(_Position(*last) if size else after, size == WINDOW, wanted, without_job)


def _position(handler: Handler) -> _Position:
    """Return where the handler continues; at its first run, the start of its backfill window."""
    rows = query(
        "SELECT backfilled_xact, backfilled_to FROM tailrace_jobs_queue WHERE name = %(name)s",
        name=handler.name,
    )
    xact, id = rows[0] if rows else (None, None)
    if xact is not None:
        return _Position(xact, id)
    if id is None:
        id = _first_event(handler)
    [(first, xact, oldest_running)] = query(_BEGIN, id=id)
    if first is None:
        return _Position(oldest_running, 0)
    return _Position(0, first - 1) if xact == 0 else _Position(min(xact, oldest_running), 0)


# Reads several events, because the first by id may not be the first by transaction.
_BEGIN = f"""
SELECT min(id), min(coalesce(xact, 0)), {_OLDEST_RUNNING}
FROM (SELECT id, xact FROM tailrace_events_event WHERE id >= %(id)s ORDER BY id LIMIT 1000) first
"""
_HALVE = f"""
SELECT id, recorded_at < {clock.NOW} - make_interval(secs => %(seconds)s)
FROM tailrace_events_event WHERE id >= %(id)s ORDER BY id LIMIT 1
"""


def _first_event(handler: Handler) -> int:
    """Return approximately the id of the first event in the handler's backfill window, by binary
    search: ids and times have almost the same order."""
    seconds = (handler.backfill or 0) + MARGIN_SECONDS
    [(low, high)] = query(
        "SELECT coalesce((SELECT id FROM tailrace_events_event ORDER BY id LIMIT 1), 0),"
        " coalesce((SELECT id + 1 FROM tailrace_events_event ORDER BY id DESC LIMIT 1), 0)"
    )
    while low < high:
        middle = (low + high) // 2
        rows = query(_HALVE, id=middle, seconds=seconds)
        if rows and rows[0][1]:
            low = rows[0][0] + 1
        else:
            high = middle
    return int(low)
