"""Count merged jobs after the commit.

A thread adds up the merges of a process and writes the counts each second, so that publishers with
the same unique key do not wait for each other or for the count. A crash loses unwritten counts.
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
"""The minimum time between two writes of a process."""
MAX_UNCOUNTED = 100
"""Locked jobs whose counts are kept for a later write. The counts of more jobs are lost."""

_lock = threading.Lock()
_uncounted: Counter[int] = Counter()
"""Merges into jobs that were locked by another publisher. They are added with the next counts."""


def add_on_commit(ids: Sequence[int]) -> None:
    """After the commit, add one to the count of merged jobs for each of these ids; an id may be
    given several times.

    The thread writes the counts within seconds; with JOBS_WAKE=inline the caller writes them.
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
        uncounted = _count(merges)
        with _lock:
            _uncounted.update(uncounted)


def _count(merges: Counter[int]) -> dict[int, int]:
    """Write these counts; return the counts of locked jobs, which are not written, for up to
    MAX_UNCOUNTED jobs."""
    rows = prepared.query(
        COUNT_MERGED, ids=number_array(merges), jobs=number_array(merges.values())
    )
    return {id: merges[id] for (id,) in rows[:MAX_UNCOUNTED]}


def _count_in_turn(merges: Counter[int]) -> None:
    uncounted = _count(merges)
    if not counter.is_flushing():
        counter.request(uncounted)


counter = Coalescer("merge_counter", _count_in_turn, pace=PACE_SECONDS)
"""The thread of this process that writes the counts."""
