"""A replay of many jobs is one entry in the log, and can be undone while they have not begun."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User

from tailrace.db.query import query
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job, Replay, ReplayedJob
from tailrace.jobs.operations import batches
from tailrace.jobs.operations.batches import JOB_ACTIONS
from tailrace.jobs.operations.preview import preview
from tailrace.jobs.operations.undo import progress, undo
from tests.kit import claimed
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db
REPLAY = JOB_ACTIONS["replay"]


@pytest.fixture
def keeper() -> User:
    return User.objects.create_user("keeper")


@pytest.fixture
def failed(run_jobs: Any) -> list[int]:
    """Three failed jobs, the first with a job that waited for it."""
    ids = [enqueue(Working, {"do": "permanent", "note": str(number)}) for number in range(3)]
    enqueue(Working, after=ids[0])
    run_jobs()
    Job.objects.filter(pk=ids[1]).update(
        progress_done=5, progress_note="half", result={"a": [1.5, None]}
    )
    return ids


def rows() -> list[Any]:
    return query("SELECT to_jsonb(j) FROM tailrace_jobs_job j ORDER BY id")


def replayed(keeper: User) -> Replay:
    summary = batches.apply(keeper, REPLAY, Job.objects.failed(), what="state = failed")
    assert summary.replay is not None
    return Replay.objects.get(pk=summary.replay.pk)


def test_an_undone_replay_leaves_each_row_exactly_as_it_was(keeper, failed) -> None:
    before = rows()
    replay = replayed(keeper)
    assert (replay.jobs, progress(replay)) == (4, (4, 4))
    assert rows() != before
    assert len(undo(replay, keeper).changed) == 4
    assert rows() == before
    assert not ReplayedJob.objects.exists()
    assert undo(replay, keeper).changed == []
    messages = LogEntry.objects.order_by("pk").values_list("change_message", flat=True)
    assert list(messages) == [
        "replayed 4 jobs: state = failed",
        f"undid replay {replay.pk} of 4 jobs: state = failed",
    ]


def test_what_has_begun_or_was_cancelled_stays(keeper, failed) -> None:
    replay = replayed(keeper)
    claimed("test.work", 1)
    (running,) = Job.objects.running().values_list("pk", flat=True)
    assert running == failed[0]
    JOB_ACTIONS["cancel"].operation([failed[1]], "ann")
    result = undo(replay, keeper)
    assert result.changed == [failed[2]]
    states = dict(Job.objects.values_list("pk", "state"))
    assert [states[id] for id in failed] == ["running", "cancelled", "failed"]
    assert Job.objects.get(after=failed[0]).state == "waiting", "it waits for the one that runs"


def test_a_job_that_began_and_waits_for_a_retry_stays(keeper, failed, scripted, run_jobs) -> None:
    def broken(job: Any) -> None:
        raise ValueError("again")

    scripted("test.work", broken)
    Job.objects.update(payload={})
    replay = replayed(keeper)
    run_jobs()
    assert undo(replay, keeper).changed == []
    assert Job.objects.pending().count() == 3


def test_many_jobs_are_one_entry_in_the_log_with_the_number(keeper, monkeypatch) -> None:
    monkeypatch.setattr(batches, "BATCH", 2)
    for number in range(5):
        Job.objects.create(handler="test.work", state="failed", error=str(number))
    summary = batches.apply(keeper, REPLAY, Job.objects.failed(), 4, what="queue = test.work")
    assert (summary.changed, summary.more) == (4, True)
    assert LogEntry.objects.get().change_message == "replayed 4 jobs: queue = test.work"
    assert LogEntry.objects.get().pk == summary.entry


def test_nothing_changed_is_no_entry(keeper) -> None:
    batches.apply(keeper, REPLAY, Job.objects.failed(), what="x")
    assert not LogEntry.objects.exists()


def test_a_preview_says_what_would_be_done_and_changes_nothing(keeper, failed, monkeypatch) -> None:
    enqueue(Working, unique_key="k")
    Job.objects.create(handler="test.work", state="failed", unique_key="k")
    before = rows()
    shown = preview(REPLAY, Job.objects.failed())
    times = [job.finished_at or job.created_at for job in Job.objects.failed()]
    assert (shown.jobs, shown.more, shown.dependents) == (4, False, 1)
    assert shown.by_handler == [("test.work", 4)]
    assert shown.refused == {"an unstarted job has the same unique key": 1}
    assert (shown.oldest, shown.newest) == (min(times), max(times))
    assert rows() == before
    monkeypatch.setattr("tailrace.jobs.operations.preview.MAX_JOBS", 2)
    assert (preview(REPLAY, Job.objects.failed()).jobs, shown.last_id) == (2, max(shown.sample))
    left = preview(REPLAY, Job.objects.failed(), lambda jobs: {job.pk for job in jobs})
    assert (left.jobs, left.more) == (0, False)
