"""Kind: something that should be true of stored state: how to find where not, and a repair."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from django.db import connection, transaction

from events import clock
from jobs import registry

BATCH = 5000
"""Rows that one statement looks at."""
MOST = 10_000
"""Finds that one run keeps of a kind."""
STATEMENT_MS, LOCK_MS = 60_000, 2000
GRACE_SECONDS = 120
"""What tick and sweeper put right within seconds is found once it is older than this."""

OLD = f"{clock.NOW} - interval '{GRACE_SECONDS} seconds'"


@dataclass(frozen=True, slots=True)
class Scope:
    """What a run looks at."""

    since: float = 86_400.0
    """Seconds: events that are older are left alone."""


class Kind:
    """One thing that should be true. Its docstring is what a report says of it."""

    name: ClassVar[str] = ""
    repairs: ClassVar[bool] = False
    advice: ClassVar[str] = ""
    """What the repair does, or what to do where there is none."""

    def find(self, scope: Scope) -> Iterator[Any]:
        """Yield keys (ids, or names) of where it does not hold."""
        raise NotImplementedError

    def again(self, keys: Sequence[Any], scope: Scope) -> list[Any]:
        """Return those of the keys for which it still does not hold."""
        chosen = set(keys)
        return [key for key in self.find(scope) if key in chosen]

    def repair(self, keys: Sequence[Any], scope: Scope) -> None:
        """Make it hold for these, by the one writer of that move."""
        raise NotImplementedError

    @classmethod
    def description(cls) -> str:
        return (cls.__doc__ or "").strip().split("\n\n")[0]


class RowKind(Kind):
    """A condition on the rows `r` of one table. All of a table's are looked for in one pass."""

    table: ClassVar[str] = "jobs_job"
    condition: ClassVar[str] = ""
    """SQL; true of a row that should not be so."""
    change: ClassVar[str] = ""
    """SQL after SET that puts such a row right; empty if `repair` does more than that."""

    def find(self, scope: Scope) -> Iterator[Any]:
        yield from (id for _kind, id in scan([self]))

    def again(self, keys: Sequence[Any], scope: Scope) -> list[Any]:
        return [id for _kind, id in scan([self], list(keys))]

    def repair(self, keys: Sequence[Any], scope: Scope) -> None:
        rows(
            f"UPDATE {self.table} r SET {self.change}"
            f" WHERE r.id = ANY(%(ids)s) AND ({self.condition}) RETURNING r.id",
            ids=list(keys),
        )


def scan(kinds: Sequence[RowKind], ids: list[int] | None = None) -> Iterator[tuple[RowKind, int]]:
    """Yield (kind, id) of the rows of one table that any of the kinds finds: of these ids, or of
    the whole table in batches along its primary key."""
    table = kinds[0].table
    cases = ", ".join(f"CASE WHEN {kind.condition} THEN {n} END" for n, kind in enumerate(kinds))
    either = " OR ".join(f"({kind.condition})" for kind in kinds)
    found = f"SELECT r.id, array_remove(ARRAY[{cases}], NULL) FROM {table} r WHERE ({either})"
    if ids is not None:
        for id, places in rows(f"{found} AND r.id = ANY(%(ids)s) ORDER BY r.id", ids=ids):
            yield from ((kinds[place], id) for place in places)
        return
    beyond = 0
    while (last := _end_of_batch(table, beyond)) is not None:
        batch = f"{found} AND r.id > %(beyond)s AND r.id <= %(last)s ORDER BY r.id"
        for id, places in rows(batch, beyond=beyond, last=last):
            yield from ((kinds[place], id) for place in places)
        beyond = last


def _end_of_batch(table: str, beyond: int) -> int | None:
    ids = f"SELECT id FROM {table} WHERE id > %(beyond)s ORDER BY id LIMIT {BATCH}"
    last: int | None = rows(f"SELECT max(id) FROM ({ids}) batch", beyond=beyond)[0][0]
    return last


def rows(statement: str, **params: Any) -> list[Any]:
    """Execute one statement that neither runs nor waits for long, in a transaction of its own."""
    with bounded(), connection.cursor() as cursor:
        cursor.execute(statement, clock.params() | _code() | params)
        return cursor.fetchall()


@contextmanager
def bounded() -> Iterator[None]:
    """Let the statements of the block time out, rather than stand in anybody's way."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('statement_timeout', %s, true),"
            " set_config('lock_timeout', %s, true)",
            [str(STATEMENT_MS), str(LOCK_MS)],
        )
        yield


def _code() -> dict[str, Any]:
    """What conditions may ask about the code: the names of handlers."""
    return {"known": list(registry.everything()), "in_lanes": registry.laned()}
