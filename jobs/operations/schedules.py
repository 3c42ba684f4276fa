"""Create, change and remove schedules in bulk: thousands per statement.

A schedule is identified by its name. Its owner is any text, such as `billing:subscription:17`.
Schedules are removed by name, by owner, or by the beginning of the owner.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Any

from pydantic import BaseModel

from tailrace.db import locks
from tailrace.db.limits import statement_limit
from tailrace.db.query import database_now, query
from tailrace.db.sql.arrays import arrays
from tailrace.db.sql.plans import probe
from tailrace.jobs.engine import registry
from tailrace.jobs.enqueue import InvalidJob, payload_json
from tailrace.jobs.models import Schedule, timing
from tailrace.jobs.models.schedule import LIMITS, OF_CODE
from tailrace.jobs.operations.cancel import cancel

BATCH = 10_000
"""Schedules, or jobs, per statement."""
STATEMENT_SECONDS = 60


class InvalidSchedule(ValueError):
    """A schedule is invalid; no schedule was created or changed. If the caller had a transaction
    open, it must be rolled back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchedule:
    """A schedule to create, or the new values of the stored schedule with this name."""

    name: str
    handler: str
    routing_key: str = ""
    payload: BaseModel | Mapping[str, Any] | None = None
    every_seconds: float | None = None
    """Seconds between two slots; the first slot is now. Set either this or `cron`."""
    cron: str = ""
    time_zone: str = "UTC"
    """The time zone of `cron`."""
    spread: float = 0.0
    """Seconds. All slots are delayed by the same number of whole seconds below `spread`, which
    depends on the name, so that many schedules do not run at the same moment."""
    catch_up: str = Schedule.CatchUp.LATEST.value
    owner: str = ""
    next_run_at: datetime | None = None
    """The first slot if the schedule is new or its timing changes. None: see
    `create_schedules`."""


def create_schedules(rows: Iterable[NewSchedule]) -> int:
    """Create these schedules, or change the stored schedules with the same names, in the caller's
    transaction. Return the number of new and changed schedules.

    If the timing of a schedule does not change, it keeps its next slot. If the timing changes, a
    slot whose nominal time has come still runs, and later slots follow the new timing (see
    `Schedule.first_slot`). `enabled` does not change: operators set it.

    Raises InvalidSchedule, or Blocked if another open transaction holds one of the rows for more
    than ten seconds. Several processes may call it at once: rows are locked in the order of their
    names.
    """
    given = sorted(rows, key=lambda row: row.name)
    stored = _validated(given)

    def create() -> int:
        now = database_now()
        return sum(_create(batch, now) for batch in _batches(stored))

    return _with_time_limit(create)


def is_known(handler: str) -> bool:
    """Whether this process has a handler with this name."""
    return registry.find(handler) is not None


def why_not(handler: str, payload: BaseModel | Mapping[str, Any] | None) -> str:
    """Return why a schedule cannot have this handler and payload; "" if it can."""
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
    """Remove the schedules with these names, with this owner, or whose owner begins with
    `owner_prefix`, in the caller's transaction. Return the number of removed schedules.

    `cancel_pending`: also cancel their unstarted jobs, with this reason; running jobs continue.
    Slots stay until they are pruned. Schedules that handlers declare are not removed.

    Raises ValueError unless exactly one of the three is given, or Blocked as `create_schedules`.
    """
    if [names, owner or None, owner_prefix or None].count(None) != 2 or isinstance(names, str):
        raise ValueError("give exactly one of names (a list), owner and owner_prefix")
    listed = None if names is None else sorted({*names})

    def remove() -> int:
        removed = 0
        for ids in _by_owner(owner, owner_prefix) if listed is None else _by_name(listed):
            removed += len(ids)
            if cancel_pending:
                _cancel(ids, reason)
        return removed

    return _with_time_limit(remove)


def _with_time_limit(work: Callable[[], int]) -> int:
    def within_limit() -> int:
        with statement_limit(STATEMENT_SECONDS):
            return work()

    return locks.in_transaction(within_limit)


def _batches(rows: Sequence[Any]) -> Iterator[list[Any]]:
    iterator = iter(rows)
    while batch := list(islice(iterator, BATCH)):
        yield batch


# Validation


def _validated(rows: Sequence[NewSchedule]) -> list[NewSchedule]:
    """Return the rows with their payloads as JSON text."""
    timing_problems = cache(timing.problems)
    valid = []
    for position, row in enumerate(rows):
        problems = [
            *(f"{field} {problem}" for field, problem in _text_problems(row)),
            *timing_problems(row.every_seconds, row.cron, row.time_zone, row.spread).values(),
        ]
        if position and row.name == rows[position - 1].name:
            problems.append("two schedules have this name")
        if problems:
            raise InvalidSchedule(f"schedule {row.name[:100]!r}: {'; '.join(problems)}")
        valid.append(replace(row, payload=_payload(row)))
    return valid


def _text_problems(row: NewSchedule) -> Iterator[tuple[str, str]]:
    """Yield the name of a field and the problem of its value."""
    if not row.name:
        yield "name", "is empty"
    for field, limit in LIMITS.items():
        value = getattr(row, field)
        if len(value) > limit:
            yield field, f"has {len(value)} characters; at most {limit} are allowed"
        if "\0" in value:
            yield field, "contains a NUL character, which cannot be stored"
    if row.owner == OF_CODE:
        yield "owner", f"is {OF_CODE!r}, which is reserved for schedules that handlers declare"
    if row.catch_up not in Schedule.CatchUp:
        known = ", ".join(Schedule.CatchUp.values)
        yield "catch_up", f"is {row.catch_up!r}; it must be one of {known}"


def _payload(row: NewSchedule) -> Any:
    try:
        text = payload_json(registry.get(row.handler), row.payload)
    except (InvalidJob, registry.UnknownHandler) as error:
        raise InvalidSchedule(f"schedule {row.name!r}: {error}") from None
    return None if row.payload is None else text  # None: each job gets the handler's defaults


# Create

_NUMBERS = ("every_seconds", "spread")
_TYPES = {"payload": "jsonb", "next_run_at": "timestamptz"} | dict.fromkeys(_NUMBERS, "float8")
_COLUMNS = [field.name for field in fields(NewSchedule)]
_FIELDS = [name for name in _COLUMNS if name not in ("name", "next_run_at")]


def _fields_of(alias: str) -> str:
    return ", ".join(f"{alias}.{name}" for name in _FIELDS)


_GIVEN = f"""
given AS MATERIALIZED (
  SELECT * FROM unnest({", ".join(f"%({n})s::{_TYPES.get(n, 'text')}[]" for n in _COLUMNS)})
    WITH ORDINALITY AS rows ({", ".join(_COLUMNS)}, place)
)"""

# An existing row is locked and not changed. Rows are inserted and locked in the order of names.
_INSERT = f"""
WITH {locks.LIMITED}, {_GIVEN},
inserted AS (
  INSERT INTO tailrace_jobs_schedule (name, {", ".join(_FIELDS)}, enabled, next_run_at)
  SELECT name, {_fields_of("given")}, true, next_run_at FROM limited, given ORDER BY name
  ON CONFLICT (name) DO UPDATE SET name = excluded.name WHERE false
  RETURNING id
), {locks.restored("inserted")}
SELECT (SELECT count(*) FROM inserted) FROM restored
"""

_TIMING = ("every_seconds", "cron", "time_zone", "spread")
"""The columns that decide the times of slots."""
_BEFORE = ("name", "owner", *_TIMING, "next_run_at")
"""The columns that are read of a stored schedule before it changes."""
_DIFFERENT = f"""
WITH {_GIVEN}
SELECT given.place - 1, {", ".join(f"s.{name}" for name in _BEFORE)}
FROM given JOIN tailrace_jobs_schedule s ON {probe("s.name", "given.name")}
WHERE ({_fields_of("given")}) IS DISTINCT FROM ({_fields_of("s")})
"""

_CHANGE = f"""
WITH {_GIVEN}
UPDATE tailrace_jobs_schedule s
SET ({", ".join(_FIELDS)}, next_run_at) = ROW ({_fields_of("given")}, given.next_run_at)
FROM given WHERE {probe("s.name", "given.name")}
RETURNING s.id
"""


def _create(rows: Sequence[NewSchedule], now: datetime) -> int:
    given = _arrays(
        replace(row, next_run_at=row.next_run_at or _schedule(row).first_slot(now)) for row in rows
    )
    with locks.named(lambda: f"{len(rows)} schedules from {rows[0].name!r} to {rows[-1].name!r}"):
        [(new,)] = query(_INSERT, **given, **locks.params())
    if new == len(rows):
        return new
    changed = [
        _changed(rows[place], Schedule(**dict(zip(_BEFORE, values, strict=True))), now)
        for place, *values in query(_DIFFERENT, **given)
    ]
    if changed:
        query(_CHANGE, **_arrays(changed))
    return int(new) + len(changed)


def _changed(row: NewSchedule, before: Schedule, now: datetime) -> NewSchedule:
    """Return the row with its next slot, given the stored schedule."""
    if before.owner == OF_CODE:
        raise InvalidSchedule(f"schedule {row.name!r} is declared by a handler; use another name")
    after = _schedule(row)
    if all(getattr(before, name) == getattr(after, name) for name in _TIMING):
        return replace(row, next_run_at=before.next_run_at)
    return replace(row, next_run_at=row.next_run_at or after.first_slot(now, before))


def _arrays(rows: Iterable[NewSchedule]) -> dict[str, str]:
    return arrays(list(rows), _COLUMNS, _NUMBERS)


def _schedule(row: NewSchedule) -> Schedule:
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
    for batch in _batches(names):
        yield _remove(_BY_NAME, names=batch)[0]


def _by_owner(owner: str | None, prefix: str | None) -> Iterator[list[int]]:
    first = owner or prefix or ""
    last = first if owner else first + "\U0010ffff"  # the last character of Unicode
    more = True
    while more:
        ids, more = _remove(_BY_OWNER, first=first, last=last)
        yield ids


def _remove(chosen: str, **params: Any) -> tuple[list[int], bool]:
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
    """Cancel the unstarted jobs of removed schedules. No tick creates more: the rows are gone."""
    while schedules and (rows := query(_PENDING, ids=list(schedules), batch=BATCH)):
        cancel([id for (id,) in rows], by="remove_schedules", reason=reason, running=False)
