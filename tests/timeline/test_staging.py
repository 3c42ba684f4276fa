from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from django.db import connection

from tailrace.domains.timeline.imports.files.parsing.file_errors import Malformed
from tailrace.domains.timeline.imports.staging import (
    PARENT,
    create_partition,
    drop_partition,
    partition,
    stage,
    staged_count,
)
from tailrace.domains.timeline.points.points import Point

pytestmark = pytest.mark.django_db(transaction=True)

IMPORT = 4_000_000_001
SECOND = 1_000_000


@pytest.fixture(autouse=True)
def _partition() -> Iterator[None]:
    create_partition(IMPORT)
    yield
    drop_partition(IMPORT)


def point(second: int) -> Point:
    return ((1_700_000_000 + second) * SECOND, second, -second, None, None, None, None)


def batches(*sizes: int) -> Iterator[list[Point]]:
    first = 0
    for size in sizes:
        yield [point(first + n) for n in range(size)]
        first += size


def stored() -> list[int]:
    """The points as they lie in the table, by their longitude."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT lon FROM {partition(IMPORT)} ORDER BY ctid")
        return [lon for (lon,) in cursor.fetchall()]


def test_every_mixture_of_missing_values_is_stored_as_it_is() -> None:
    values = (1.5, 2.5, 3.5, 4.5)
    points: list[Point] = []
    for mask in range(16):
        altitude, accuracy, speed, course = (
            value if mask & 1 << index else None for index, value in enumerate(values)
        )
        at = 1_700_000_000_123_456
        points.append((at, -1_800_000_000, 900_000_000, altitude, accuracy, speed, course))
    stage(IMPORT, [points], connection, on_commit=lambda staged: None)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {PARENT} ORDER BY ctid")
        rows = cursor.fetchall()
    moment = datetime.fromtimestamp(1_700_000_000, UTC).replace(microsecond=123_456)
    assert [row[:4] for row in rows] == [(IMPORT, moment, -1_800_000_000, 900_000_000)] * 16
    assert [row[4:8] for row in rows] == [one[3:] for one in points]
    assert [row[8] for row in rows] == [None, *range(1, 16)]


def test_points_are_committed_with_their_count() -> None:
    counts: list[tuple[int, int]] = []

    def record(staged: int) -> None:
        assert connection.in_atomic_block
        counts.append((staged, staged_count(IMPORT)))

    staged = stage(IMPORT, batches(4, 4, 4, 1), connection, on_commit=record, rows_per_commit=6)

    assert counts == [(8, 8), (13, 13)]
    assert staged == 13
    assert stored() == list(range(13))


def test_no_transaction_is_open_while_the_file_is_read() -> None:
    def watched() -> Iterator[list[Point]]:
        for batch in batches(3, 3, 3):
            assert not connection.in_atomic_block
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
            yield batch

    stage(IMPORT, watched(), connection, on_commit=lambda staged: None, rows_per_commit=3)
    assert len(stored()) == 9


def test_what_came_before_an_error_of_the_file_is_committed() -> None:
    def broken() -> Iterator[list[Point]]:
        yield from batches(5)
        raise Malformed("The file ends in the middle", line=7)

    counts: list[int] = []
    with pytest.raises(Malformed, match="line 7"):
        stage(IMPORT, broken(), connection, on_commit=counts.append)
    assert (counts, stored()) == ([5], list(range(5)))


def test_a_run_that_begins_again_passes_over_what_is_staged() -> None:
    def killed() -> Iterator[list[Point]]:
        yield from batches(4, 3)
        raise RuntimeError("killed")

    counts: list[int] = []
    with pytest.raises(RuntimeError):
        stage(IMPORT, killed(), connection, on_commit=counts.append, rows_per_commit=4)
    assert counts == [4]

    stage(IMPORT, batches(3, 3, 3), connection, on_commit=counts.append, skip=counts[-1])
    assert counts == [4, 9]
    assert stored() == list(range(9))


def test_the_order_of_points_of_one_time_is_that_of_the_file_also_after_a_crash() -> None:
    """Each batch has three points of one time, the last of which is also the next batch's."""
    minutes = [[point(first) for first in (n, n, n + 1)] for n in range(4)]

    def killed() -> Iterator[list[Point]]:
        yield from minutes[:2]
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        stage(IMPORT, killed(), connection, on_commit=lambda staged: None, rows_per_commit=4)
    stage(IMPORT, minutes, connection, on_commit=lambda staged: None, skip=staged_count(IMPORT))
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT lon, file_order FROM {partition(IMPORT)} ORDER BY ctid")
        rows = cursor.fetchall()
    assert rows == [
        (0, None), (0, 1), (1, None), (1, 2), (1, 3), (2, None), (2, 4), (2, 5), (3, None),
        (3, 6), (3, 7), (4, None),
    ]  # fmt: skip


def test_the_count_and_the_points_are_committed_together_or_not_at_all() -> None:
    def fails(staged: int) -> None:
        raise RuntimeError("the count was not recorded")

    with pytest.raises(RuntimeError):
        stage(IMPORT, batches(4), connection, on_commit=fails)
    assert stored() == []


def test_a_partition_is_unlogged_and_made_empty_by_making_it_again() -> None:
    stage(IMPORT, batches(4), connection, on_commit=lambda staged: None)
    create_partition(IMPORT)
    assert staged_count(IMPORT) == 0
    with connection.cursor() as cursor:
        relpersistence = "SELECT relpersistence FROM pg_class WHERE relname = %s"
        cursor.execute(relpersistence, [partition(IMPORT)])
        assert cursor.fetchone() == ("u",)


def test_without_a_partition_there_is_nothing_and_nothing_to_drop() -> None:
    drop_partition(IMPORT)
    drop_partition(IMPORT)
    assert staged_count(IMPORT) == 0
