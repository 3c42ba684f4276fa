"""Claims do not pass again and again over what was claimed and cannot be removed.

A test's transaction keeps the old versions of the rows that it changes, as a held snapshot does.
"""

import time
from datetime import timedelta
from typing import Any

import pytest

from tailrace.db.query import database_now, execute, query
from tailrace.jobs.engine.claiming import bookmarks
from tailrace.jobs.engine.claiming.bookmarks import Bookmark
from tailrace.jobs.engine.maintenance.ticking import rescue, tick
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.models import Job, QueueActivity
from tailrace.jobs.operations.pause import pause, resume
from tests.kit import claimed
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db

ALL = 1000


@pytest.fixture
def bookmark(monkeypatch: pytest.MonkeyPatch) -> Bookmark:
    """Of the queue test.work; its looks from the beginning may take long."""
    monkeypatch.setattr(bookmarks, "CHEAP_SECONDS", 0.001)
    monkeypatch.setattr(bookmarks, "of_queue", {Working.name: Bookmark()})
    return bookmarks.of_queue[Working.name]


def slow_looks(bookmark: Bookmark) -> None:
    """Put off the next look from the beginning."""
    for _ in range(2):
        bookmark.scanned(60, full=True)


def entries_of_a_claim() -> int:
    """Claim what is due; return how many entries of the index of due jobs were read for it."""
    sql = "SELECT pg_stat_get_xact_tuples_returned('tailrace_job_due'::regclass)"
    [(before,)] = query(sql)
    claimed(Working.name, ALL)
    [(after,)] = query(sql)
    return int(after - before)


def overdue(seconds: float, **fields: Any) -> int:
    """Enqueue a job that has been due for so long."""
    return enqueue(Working, due_at=database_now() - timedelta(seconds=seconds), **fields)


def ids(size: int = ALL) -> list[int]:
    return [job.id for job in claimed(Working.name, size)]


def test_a_claim_begins_where_the_last_one_ended(bookmark) -> None:
    execute("SET LOCAL enable_seqscan = off")  # as in a table that is not small
    for _ in range(2):
        enqueue_many(Working, [{}] * 50)
        claimed(Working.name, ALL)
    assert entries_of_a_claim() >= 100, "and what earlier tests have left"
    slow_looks(bookmark)
    enqueue(Working)
    claimed(Working.name)
    bookmark.claimed(time.monotonic() + bookmarks.MARGIN_SECONDS)
    assert entries_of_a_claim() == 0


def test_as_long_as_looks_take_no_longer_each_is_from_the_beginning(bookmark) -> None:
    for _ in range(3):
        bookmark.scanned(0.01, full=False)
        bookmark.scanned(0.01, full=True)
        assert bookmark.ages() is None


def test_one_slow_look_alone_puts_off_none(bookmark) -> None:
    bookmark.scanned(60, full=True)
    assert bookmark.ages() is None
    bookmark.scanned(0.001, full=True)
    assert bookmark.ages() is None


def test_a_look_from_the_beginning_is_made_again_after_a_pause(bookmark, monkeypatch) -> None:
    monkeypatch.setattr(bookmarks, "LONGEST_PAUSE", 0.0)
    slow_looks(bookmark)
    assert bookmark.ages() is None


def test_what_was_due_before_is_found_by_the_next_look_from_the_beginning(bookmark) -> None:
    first = enqueue(Working)
    assert ids() == [first]
    slow_looks(bookmark)
    late = overdue(60)
    assert ids() == []
    bookmark.scanned(0.0, full=True)  # it was cheap: the snapshot is gone
    assert ids() == [late]


def test_a_commit_that_comes_a_little_late_is_found_at_once(bookmark) -> None:
    first = enqueue(Working)
    assert ids() == [first]
    slow_looks(bookmark)
    late = overdue(bookmarks.MARGIN_SECONDS / 2)
    assert ids() == [late]


def test_a_look_from_the_beginning_that_cannot_take_all_takes_the_others_back(bookmark) -> None:
    enqueue(Working)
    claimed(Working.name, ALL)
    late = [overdue(60) for _ in range(6)]
    assert ids(2) == late[:2]
    slow_looks(bookmark)
    assert ids(2) + ids(2) == late[2:]


def test_lower_priorities_are_found_behind_a_full_claim(bookmark) -> None:
    low = [overdue(60, priority=3) for _ in range(3)]
    high = [overdue(50) for _ in range(3)]
    assert ids(3) == high
    slow_looks(bookmark)
    assert ids() == low


def test_a_job_that_is_claimed_alone_hides_none_before_it(bookmark) -> None:
    before, alone = overdue(60), overdue(50)
    Job.objects.filter(pk=alone).update(isolate=True)
    assert ids() == [alone]
    slow_looks(bookmark)
    assert ids() == [before]


def test_a_process_that_finds_nothing_has_seen_that(bookmark) -> None:
    assert ids() == []
    slow_looks(bookmark)
    late = overdue(60)
    assert ids() == []
    bookmark.scanned(0.0, full=True)
    assert ids() == [late]


def test_a_paused_queue_has_seen_nothing(bookmark) -> None:
    id = overdue(60)
    pause(Working.name, by="alice")
    assert ids() == []
    slow_looks(bookmark)
    resume(Working.name, by="alice")
    assert ids() == [id]


def test_a_clock_that_is_moved_begins_anew(bookmark, clock) -> None:
    enqueue(Working)
    claimed(Working.name, ALL)
    slow_looks(bookmark)
    clock.step(60)
    assert bookmark.ages() is None


@pytest.mark.parametrize(("overdue_for", "found"), [(1, True), (60, False)])
def test_ticks_between_two_looks_from_the_beginning_find_what_became_due_lately(
    monkeypatch, overdue_for: float, found: bool
) -> None:
    monkeypatch.setattr(bookmarks, "CHEAP_SECONDS", 0.001)
    monkeypatch.setattr(tick, "bookmark", Bookmark())
    tick.wake_due()
    slow_looks(tick.bookmark)
    overdue(overdue_for)
    QueueActivity.objects.update(awake=False)
    assert (Working.name in tick.wake_due()) is found
    tick.bookmark.scanned(0.0, full=True)
    assert (Working.name in tick.wake_due()) is not found


def test_rescues_whose_looks_take_long_are_put_off(monkeypatch) -> None:
    monkeypatch.setattr(bookmarks, "CHEAP_SECONDS", 0.001)
    monkeypatch.setattr(rescue, "bookmark", Bookmark())
    enqueue_many(Working, [{}] * 2)
    asked_for, late = (job.id for job in claimed(Working.name))
    Job.objects.update(lease_until=database_now() - timedelta(seconds=60))
    slow_looks(rescue.bookmark)
    assert rescue.rescue() == 0
    assert rescue.rescue(ids=[asked_for]) == 1, "a repair is not put off"
    assert Job.objects.running().get().pk == late
    rescue.bookmark.scanned(0.0, full=True)
    assert rescue.rescue() == 1
