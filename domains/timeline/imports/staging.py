"""The table of staged points: one UNLOGGED partition for each import, filled by binary COPY.

A migration creates the parent table; this module creates and drops partitions. Read and write a
partition only by its own name (`partition(import_id)`), never through the parent, so that no import
waits for the locks of another import.

A partition has no index. Rows are appended and never changed, so `ctid` orders them, and a range of
blocks (`WHERE ctid >= '(100,0)' AND ctid < '(200,0)'`) reads a part without scanning the rest. The
table is UNLOGGED: after a crash of the database it is empty. Compare `staged_count` with the count
that `on_commit` recorded.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from operator import lt

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from tailrace.db.query import execute, query
from tailrace.domains.timeline.imports.files.parsing.file_errors import FileError
from tailrace.domains.timeline.points.points import Point

PARENT = "tailrace_timeline_staged_point"

_EPOCH = 946_684_800_000_000
"""2000-01-01, the epoch of PostgreSQL's timestamps, in microseconds since 1970."""
_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER = b"\xff\xff"
_START = struct.Struct(">hiqiqiiii").pack
_BARE = struct.Struct(">hiqiqiiiiiiiii").pack
_WITH_ALTITUDE = struct.Struct(">hiqiqiiiiifiiii").pack
_WITH_ACCURACY = struct.Struct(">hiqiqiiiiiifiii").pack
_WITH_BOTH = struct.Struct(">hiqiqiiiiififiii").pack
_REAL = struct.Struct(">if").pack
_INTEGER = struct.Struct(">ii").pack
_NULL = struct.pack(">i", -1)


def partition(import_id: int) -> str:
    """Return the table name of an import's partition, to be used in SQL."""
    return f"{PARENT}_{import_id:d}"


def create_partition(import_id: int) -> None:
    """Create an empty partition for the import, or truncate its existing partition."""
    name = partition(import_id)
    with transaction.atomic():
        query("SELECT pg_advisory_xact_lock(hashtextextended(%(name)s, 0))", name=name)
        if _exists(name):
            execute(f"TRUNCATE {name}")
            return
        # ATTACH PARTITION takes a weaker lock on the parent than CREATE TABLE … PARTITION OF.
        execute(
            f"CREATE UNLOGGED TABLE {name} (LIKE {PARENT},"
            f" CONSTRAINT {name}_import CHECK (import_id = {import_id:d}))"
        )
        execute(f"ALTER TABLE {PARENT} ATTACH PARTITION {name} FOR VALUES IN ({import_id:d})")


def drop_partition(import_id: int) -> None:
    execute(f"DROP TABLE IF EXISTS {partition(import_id)}")


def staged_count(import_id: int) -> int:
    """Return the number of the import's staged points; 0 if it has no partition."""
    name = partition(import_id)
    return int(query(f"SELECT count(*) FROM {name}")[0][0]) if _exists(name) else 0


def stage(
    import_id: int,
    batches: Iterable[list[Point]],
    connection: BaseDatabaseWrapper,
    *,
    on_commit: Callable[[int], None],
    skip: int = 0,
    rows_per_commit: int = 100_000,
) -> int:
    """Copy the points into the import's partition; return the total number of staged points.

    Points are committed after the batch that completes `rows_per_commit` points, and at the end.
    Each of these transactions also calls `on_commit(staged)`, which records counts and progress.
    The first `skip` points are skipped: they were committed before. No transaction is open while
    `batches` is read, so that it may use the database. When `batches` raises a FileError, the
    points before it are committed in the same way, and the error is raised again. Other exceptions
    lose only the points since the last commit.
    """
    staged, rows = skip, 0
    order = FileOrder()
    packed: list[bytes] = []

    def commit() -> None:
        nonlocal rows
        with transaction.atomic(using=connection.alias):
            _copy(connection, partition(import_id), packed)
            on_commit(staged)
        packed.clear()
        rows = 0

    try:
        for batch in batches:
            numbers = order.numbers(batch)
            points = batch[skip:]
            packed.append(pack(import_id, points, numbers[skip:]))
            skip -= len(batch) - len(points)
            rows += len(points)
            staged += len(points)
            if rows >= rows_per_commit:
                commit()
    except FileError:
        commit()
        raise
    commit()
    return staged


class FileOrder:
    """Numbers the points of a file whose time may be the time of a point before them, in ascending
    order. Points that are later or earlier than all points before them get no number, so that most
    files need none."""

    def __init__(self) -> None:
        self._newest, self._oldest = -(2**63), 2**63
        self._count = 0

    def numbers(self, points: Sequence[Point]) -> list[int | None]:
        """Return the numbers of the next points of the file; [] if none of them has one."""
        times = [point[0] for point in points]
        if times and times[0] > self._newest and all(map(lt, times, islice(times, 1, None))):
            self._newest, self._oldest = times[-1], min(self._oldest, times[0])
            return []
        newest, oldest, count = self._newest, self._oldest, self._count
        if times and oldest > newest:  # the first points of the file
            oldest = times[0]
        numbers: list[int | None] = []
        add = numbers.append
        for time in times:
            if time > newest:
                newest = time
                add(None)
            elif time < oldest:
                oldest = time
                add(None)
            else:
                count += 1
                add(count)
        self._newest, self._oldest, self._count = newest, oldest, count
        return numbers


def pack(import_id: int, points: list[Point], numbers: Sequence[int | None] = ()) -> bytes:
    """Return the points as rows of PostgreSQL's binary COPY format. `numbers` are their numbers by
    FileOrder."""
    rows: list[bytes] = []
    add = rows.append
    for recorded_at, lon, lat, altitude, accuracy, speed, course in points:
        # A row is the number of columns, then size and value of each; the size -1 is NULL.
        moment = recorded_at - _EPOCH
        if speed is not None or course is not None:
            measures = (altitude, accuracy, speed, course)
            row = _START(9, 8, import_id, 8, moment, 4, lon, 4, lat)
            row += b"".join([_NULL if value is None else _REAL(4, value) for value in measures])
            add(row + _NULL)
        elif altitude is None:
            if accuracy is None:
                add(_BARE(9, 8, import_id, 8, moment, 4, lon, 4, lat, -1, -1, -1, -1, -1))
            else:
                add(
                    _WITH_ACCURACY(
                        9, 8, import_id, 8, moment, 4, lon, 4, lat, -1, 4, accuracy, -1, -1, -1
                    )
                )
        elif accuracy is None:
            add(
                _WITH_ALTITUDE(
                    9, 8, import_id, 8, moment, 4, lon, 4, lat, 4, altitude, -1, -1, -1, -1
                )
            )
        else:
            add(
                _WITH_BOTH(
                    9,
                    8,
                    import_id,
                    8,
                    moment,
                    4,
                    lon,
                    4,
                    lat,
                    4,
                    altitude,
                    4,
                    accuracy,
                    -1,
                    -1,
                    -1,
                )
            )
    for index, number in enumerate(numbers):
        if number is not None:
            rows[index] = rows[index][: -len(_NULL)] + _INTEGER(4, number)
    return b"".join(rows)


def _copy(connection: BaseDatabaseWrapper, table: str, packed: list[bytes]) -> None:
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} FROM STDIN (FORMAT BINARY)") as copy,
    ):
        copy.write(_HEADER)
        for rows in packed:
            copy.write(rows)
        copy.write(_TRAILER)


def _exists(name: str) -> bool:
    return query("SELECT to_regclass(%(name)s)", name=name)[0][0] is not None
