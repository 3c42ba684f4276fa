"""Count after the commit how many jobs were merged into others.

So publishers of one unique key do not wait for each other, nor for the count: a thread adds up what
a process merges and writes it each second. A crash loses what is not written yet.
"""

import threading
from collections import Counter
from collections.abc import Sequence
from functools import partial

from django.conf import settings

from tailrace.db import connections, prepared
from tailrace.db.arrays import number_array
from tailrace.jobs.engine.coalesce import Coalescer
from tailrace.jobs.engine.inserting.insert_sql import COUNT_MERGED

PACE_SECONDS = 1.0
"""The least time between two statements of a process that count."""
MAX_UNCOUNTED = 100
"""Jobs whose count is kept for later; more are forgotten."""

_lock = threading.Lock()
_uncounted: Counter[int] = Counter()
"""Merges into jobs that another publisher had locked; added with the next ones."""


def add_on_commit(ids: Sequence[int]) -> None:
    """Add one to the count of each of these jobs (as often as it is named) after the commit.

    The thread does it within seconds; with JOBS_WAKE=inline the caller does it itself.
    """
    if ids:
        connections.current().on_commit(partial(_add, ids), robust=True)


def _add(ids: Sequence[int]) -> None:
    if settings.JOBS_WAKE == "thread":
        counter.request(ids)
    else:
        with _lock:
            merges = Counter(ids) + _uncounted
            _uncounted.clear()
        left = _count(merges)
        with _lock:
            _uncounted.update(left)


def _count(merges: Counter[int]) -> dict[int, int]:
    """Write these counts; return those of jobs that others have locked, but for very many."""
    rows = prepared.query(
        COUNT_MERGED, ids=number_array(merges), jobs=number_array(merges.values())
    )
    return {id: merges[id] for (id,) in rows[:MAX_UNCOUNTED]}


def _count_in_turn(merges: Counter[int]) -> None:
    left = _count(merges)
    if not counter.is_flushing():
        counter.request(left)


counter = Coalescer("merge_counter", _count_in_turn, pace=PACE_SECONDS)
"""This process's thread for the counts."""
