"""Create, change and remove schedules in bulk: thousands per statement.

Each is known by its name. What a schedule is for, its owner, is a text of the caller's choice, such
as `billing:subscription:17`: schedules are removed by their names or by the beginning of the owner.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Any

from pydantic import BaseModel

from tailrace.db import locks
from tailrace.db.arrays import arrays
from tailrace.db.limits import statement_limit
from tailrace.db.plans import probe
from tailrace.db.query import database_now, query
from tailrace.jobs import registry
from tailrace.jobs.enqueue import InvalidJob, payload_json
from tailrace.jobs.models import Schedule, timing
from tailrace.jobs.models.schedule import LIMITS, OF_CODE
from tailrace.jobs.operations.cancel import cancel

BATCH = 10_000
"""Schedules, or jobs, per statement."""
STATEMENT_SECONDS = 60


class InvalidSchedule(ValueError):
    """A schedule is invalid; none was created. The transaction it was in can be rolled back only,
    if there was one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchedule:
    """A schedule to create, or to change the one of this name into."""

    name: str
    handler: str
    routing_key: str = ""
    payload: BaseModel | Mapping[str, Any] | None = None
    every_seconds: float | None = None
    """Seconds between two slots; the first one is at once. Either this or `cron`."""
    cron: str = ""
    time_zone: str = "UTC"
    """Of `cron`."""
    spread: float = 0.0
    """Seconds: each slot is later by a fixed part of them, in whole seconds, which depends on the
    name. So the slots of many schedules are not all at once, and each keeps its time."""
    catch_up: str = Schedule.CatchUp.LATEST.value
    owner: str = ""
    next_run_at: datetime | None = None
    """The first slot if the schedule is new or its timing changes; None: as `create_schedules`
    says."""


def create_schedules(rows: Iterable[NewSchedule]) -> int:
    """Create these schedules, or change those that are there by their names, in the caller's
    transaction; return how many are new or were changed.

    One whose timing does not change keeps its next slot. If it changes, a slot whose nominal time
    has come still runs, and later ones are of the new timing (`Schedule.first_slot`). Whether a
    schedule is enabled is for operators to say, and stays as it is.

    Raises InvalidSchedule, or Blocked when another open transaction has one of the rows for more
    than ten seconds. Any number of processes may do so at once: rows are locked by their names'
    order.
    """
    given = sorted(rows, key=lambda row: row.name)
    stored = _validated(given)

    def create() -> int:
        now = database_now()
        return sum(_create(batch, now) for batch in _batches(stored))

    return _limited(create)


def is_known(handler: str) -> bool:
    """Whether this process has a handler of this name."""
    return registry.find(handler) is not None


def why_not(handler: str, payload: BaseModel | Mapping[str, Any] | None) -> str:
    """Return why this handler cannot have a schedule with this payload, or an empty string."""
    try:
        payload_json(registry.get(handler), payload)
    except (InvalidJob, registry.UnknownHandler) as error:
        return str(error)
    return ""


def remove_schedules(
    names: Iterable[str] | None = None,
    *,
    owner: str | None = None,
    owner_prefix: str | None = None,
    cancel_pending: bool = True,
    reason: str = "its schedule was removed",
) -> int:
    """Remove the schedules of these names, of this owner, or of all owners that begin so, in the
    caller's transaction; return how many there were.

    `cancel_pending`: cancel their jobs that have not begun, with this reason; those that run go on.
    Their slots stay until they are pruned. Schedules that the code declares are not removed.

    Raises ValueError unless one of the three is given, or Blocked as `create_schedules`.
    """
    if [names, owner or None, owner_prefix or None].count(None) != 2 or isinstance(names, str):
        raise ValueError("give one of names (a list), owner and owner_prefix, which is not empty")
    listed = None if names is None else sorted({*names})

    def remove() -> int:
        removed = 0
        for ids in _by_owner(owner, owner_prefix) if listed is None else _by_name(listed):
            removed += len(ids)
            if cancel_pending:
                _cancel(ids, reason)
        return removed

    return _limited(remove)


def _limited(work: Callable[[], int]) -> int:
    def within_limit() -> int:
        with statement_limit(STATEMENT_SECONDS):
            return work()

    return locks.in_transaction(within_limit)


def _batches(rows: Sequence[Any]) -> Iterator[list[Any]]:
    left = iter(rows)
    while batch := list(islice(left, BATCH)):
        yield batch


# Validation


@dataclass(slots=True)
class _Row:
    """A valid row of tailrace_jobs_schedule, and its place among those of one statement."""

    place: int
    name: str
    handler: str
    routing_key: str
    payload: str | None
    every_seconds: float | None
    cron: str
    time_zone: str
    spread: float
    owner: str
    catch_up: str
    given_next_run_at: datetime | None
    next_run_at: datetime | None = None


def _validated(rows: Sequence[NewSchedule]) -> list[_Row]:
    timing_problems = cache(timing.problems)
    stored: list[_Row] = []
    for place, row in enumerate(rows):
        problems = [
            *(f"{field} {words}" for field, words in _wrong_texts(row)),
            *timing_problems(row.every_seconds, row.cron, row.time_zone, row.spread).values(),
        ]
        if place and row.name == rows[place - 1].name:
            problems.append("its name is given twice")
        if problems:
            raise InvalidSchedule(f"schedule {row.name[:100]!r}: {'; '.join(problems)}")
        stored.append(
            _Row(
                place % BATCH, row.name, row.handler, row.routing_key, _payload(row),
                row.every_seconds, row.cron, row.time_zone, row.spread, row.owner, row.catch_up,
                row.next_run_at,
            )
        )  # fmt: skip
    return stored


def _wrong_texts(row: NewSchedule) -> Iterator[tuple[str, str]]:
    if not row.name:
        yield "name", "is empty"
    for field, limit in LIMITS.items():
        value = getattr(row, field)
        if len(value) > limit:
            yield field, f"has {len(value)} characters, {limit} at most"
        if "\0" in value:
            yield field, "has a NUL character, which cannot be stored"
    if row.owner == OF_CODE:
        yield "owner", f"is {OF_CODE!r}, which is for those that handlers declare"
    if row.catch_up not in Schedule.CatchUp:
        known = ", ".join(Schedule.CatchUp.values)
        yield "catch_up", f"is {row.catch_up!r}; it must be one of {known}"


def _payload(row: NewSchedule) -> str | None:
    try:
        text = payload_json(registry.get(row.handler), row.payload)
    except (InvalidJob, registry.UnknownHandler) as error:
        raise InvalidSchedule(f"schedule {row.name!r}: {error}") from None
    return None if row.payload is None else text  # the defaults stay those of the handler


# Create

_COLUMNS = (
    "place", "name", "handler", "routing_key", "payload", "every_seconds", "cron", "time_zone",
    "spread", "owner", "catch_up", "next_run_at",
)  # fmt: skip
_NUMBERS = {"place", "every_seconds", "spread"}
_FIELDS = [name for name in _COLUMNS if name not in ("place", "name", "next_run_at")]


def _of(alias: str) -> str:
    return ", ".join(f"{alias}.{name}" for name in _FIELDS)


_GIVEN = f"""
given AS MATERIALIZED (
  SELECT place, name, handler, routing_key, payload::jsonb AS payload, every_seconds, cron,
         time_zone, spread, owner, catch_up, next_run_at
  FROM unnest(
    %(place)s::int[], %(name)s::text[], %(handler)s::text[], %(routing_key)s::text[],
    %(payload)s::text[], %(every_seconds)s::float8[], %(cron)s::text[], %(time_zone)s::text[],
    %(spread)s::float8[], %(owner)s::text[], %(catch_up)s::text[], %(next_run_at)s::timestamptz[]
  ) AS rows ({", ".join(_COLUMNS)})
)"""

# A row that is there is locked and stays as it is: new and old ones in the order of their names.
_INSERT = f"""
WITH {locks.LIMITED}, {_GIVEN},
inserted AS (
  INSERT INTO tailrace_jobs_schedule (name, {", ".join(_FIELDS)}, enabled, next_run_at)
  SELECT name, {_of("given")}, true, next_run_at FROM limited, given ORDER BY name
  ON CONFLICT (name) DO UPDATE SET name = excluded.name WHERE false
  RETURNING id
), {locks.restored("inserted")}
SELECT (SELECT count(*) FROM inserted) FROM restored
"""

_DECIDES = ("every_seconds", "cron", "time_zone", "spread")
"""The columns that decide when slots are."""
_BEFORE = ("name", "owner", *_DECIDES, "next_run_at")
_DIFFERENT = f"""
WITH {_GIVEN}
SELECT given.place, {", ".join(f"s.{name}" for name in _BEFORE)}
FROM given JOIN tailrace_jobs_schedule s ON {probe("s.name", "given.name")}
WHERE ({_of("given")}) IS DISTINCT FROM ({_of("s")})
"""

_CHANGE = f"""
WITH {_GIVEN}
UPDATE tailrace_jobs_schedule s
SET ({", ".join(_FIELDS)}, next_run_at) = ROW ({_of("given")}, given.next_run_at)
FROM given WHERE {probe("s.name", "given.name")}
RETURNING s.id
"""


def _create(rows: Sequence[_Row], now: datetime) -> int:
    for row in rows:
        row.next_run_at = row.given_next_run_at or _schedule(row).first_slot(now)
    with locks.named(lambda: f"{len(rows)} schedules from {rows[0].name!r} to {rows[-1].name!r}"):
        [(new,)] = query(_INSERT, **_arrays(rows), **locks.params())
    if new == len(rows):
        return new
    changed = [
        _changed(rows[place], Schedule(**dict(zip(_BEFORE, values, strict=True))), now)
        for place, *values in query(_DIFFERENT, **_arrays(rows))
    ]
    if changed:
        query(_CHANGE, **_arrays(changed))
    return int(new) + len(changed)


def _changed(row: _Row, before: Schedule, now: datetime) -> _Row:
    """Return the row with its next slot, given the schedule as it is stored."""
    if before.owner == OF_CODE:
        raise InvalidSchedule(f"schedule {row.name!r} is of the code; use another name")
    after = _schedule(row)
    unchanged = all(getattr(before, name) == getattr(after, name) for name in _DECIDES)
    if unchanged:
        row.next_run_at = before.next_run_at
    elif row.given_next_run_at is None:
        row.next_run_at = after.first_slot(now, before)
    return row


def _arrays(rows: Sequence[_Row]) -> dict[str, str]:
    return arrays(rows, _COLUMNS, _NUMBERS)


def _schedule(row: _Row) -> Schedule:
    return Schedule(
        name=row.name, every_seconds=row.every_seconds, cron=row.cron, time_zone=row.time_zone,
        spread=row.spread,
    )  # fmt: skip


# Remove

_BY_NAME = "s.name = ANY(%(names)s::text[])"
_BY_OWNER = "s.owner ~>=~ %(first)s AND s.owner ~<=~ %(last)s"
_REMOVE = f"""
WITH {locks.LIMITED},
chosen AS MATERIALIZED (
  SELECT s.name FROM tailrace_jobs_schedule s WHERE {{chosen}} AND s.owner <> '{OF_CODE}'
    LIMIT %(batch)s
),
locked AS MATERIALIZED (
  SELECT s.id FROM limited, chosen JOIN tailrace_jobs_schedule s ON {probe("s.name", "chosen.name")}
  WHERE s.owner <> '{OF_CODE}'
  ORDER BY s.name FOR UPDATE OF s
),
removed AS (
  DELETE FROM tailrace_jobs_schedule s USING locked WHERE {probe("s.id", "locked.id")}
    RETURNING s.id
), {locks.restored("removed")}
SELECT (SELECT count(*) FROM chosen), array(SELECT id FROM removed) FROM restored
"""


def _by_name(names: Sequence[str]) -> Iterator[list[int]]:
    """Remove batch after batch; yield the ids of each."""
    for batch in _batches(names):
        yield _remove(_BY_NAME, names=batch)[0]


def _by_owner(owner: str | None, prefix: str | None) -> Iterator[list[int]]:
    first = owner or prefix or ""
    last = first if owner else first + "\U0010ffff"  # no character is behind this one
    more = True
    while more:
        ids, more = _remove(_BY_OWNER, first=first, last=last)
        yield ids


def _remove(chosen: str, **params: Any) -> tuple[list[int], bool]:
    """Remove a batch; return the ids, and whether there may be more."""
    with locks.named(lambda: f"the rows of schedules ({params})"[:200]):
        [(count, ids)] = query(
            _REMOVE.format(chosen=chosen), **params, **locks.params(), batch=BATCH
        )
    return ids, count == BATCH


_PENDING = """
SELECT id FROM tailrace_jobs_job
WHERE schedule_id = ANY(%(ids)s::bigint[]) AND schedule_id IS NOT NULL
  AND state IN ('waiting', 'pending')
LIMIT %(batch)s
"""


def _cancel(schedules: Sequence[int], reason: str) -> None:
    """Cancel what has not begun. The rows of the schedules are gone, so no tick makes more."""
    while schedules and (
        jobs := [id for (id,) in query(_PENDING, ids=list(schedules), batch=BATCH)]
    ):
        cancel(jobs, by="remove_schedules", reason=reason, running=False)
