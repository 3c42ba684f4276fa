"""Cancel, retry and replay by the API: one job, or those of a filter, piece by piece."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry

from tailrace.jobs.models import Job
from tailrace.jobs.operations import batches
from tests.sandbox.handlers import Other, Requested
from tests.web.jobs.requesting import operator
from tests.web.program import Program, problem, program

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> Program:
    return operator()


def make(state: str, handler: str = Requested.name, **fields: object) -> Job:
    return Job.objects.create(handler=handler, state=state, **fields)


def state_of(job: Job) -> str:
    return Job.objects.get(pk=job.pk).state


def test_an_unstarted_job_is_cancelled_and_a_running_one_asked_to_stop(ann: Program) -> None:
    pending, running = make("pending"), make("running")
    assert ann.post(f"/jobs/{pending.pk}/cancel").json() == {
        "id": pending.pk, "state": "cancelled", "stop_requested": False,
    }  # fmt: skip
    assert ann.post(f"/jobs/{running.pk}/cancel").json()["stop_requested"]
    assert Job.objects.get(pk=pending.pk).error == "cancelled by ann"
    messages = LogEntry.objects.order_by("pk").values_list("change_message", flat=True)
    assert list(messages) == ["cancelled", "requested to stop"]


def test_a_job_is_retried_now_and_replayed(ann: Program, clock) -> None:
    later, failed = make("pending", due_at=clock.now() + timedelta(hours=1)), make("failed")
    assert ann.post(f"/jobs/{later.pk}/retry").status_code == 200
    assert Job.objects.get(pk=later.pk).due_at <= clock.now()
    assert ann.post(f"/jobs/{failed.pk}/replay").json()["state"] == "pending"


def test_what_is_not_possible_says_why(ann: Program) -> None:
    done = make("completed")
    for action, why in (
        ("cancel", "already finished"),
        ("retry", "not scheduled for later"),
        ("replay", "it is completed"),
    ):
        assert why in problem(ann.post(f"/jobs/{done.pk}/{action}"), 409)["detail"]
        problem(ann.post(f"/jobs/{done.pk + 1}/{action}"), 404)


def test_a_dry_run_counts_and_shows_and_changes_nothing(ann: Program) -> None:
    jobs = [make("failed") for _ in range(12)]
    make("failed", Other.name)
    answer = ann.post("/jobs/replay", {"handler": Requested.name, "dry_run": True}).json()
    assert (answer["jobs"], answer["next"]) == (12, None)
    assert [job["id"] for job in answer["sample"]] == [job.pk for job in jobs[:1:-1]]
    assert Job.objects.failed().count() == 13


def test_the_jobs_of_a_filter_are_replayed_piece_by_piece(ann: Program, monkeypatch) -> None:
    monkeypatch.setattr(batches, "BATCH", 2)
    for _ in range(7):
        make("failed")
    taken = make("failed", unique_key="k")
    make("pending", unique_key="k")
    other = make("failed", Other.name)
    body = {"handler": Requested.name, "limit": 3}
    pieces = [ann.post("/jobs/replay", body).json()]
    while pieces[-1]["next"]:
        pieces.append(ann.post("/jobs/replay", body | {"cursor": pieces[-1]["next"]}).json())
    assert [piece["jobs"] for piece in pieces] == [2, 3, 2]
    assert pieces[0]["refused"] == {"an unstarted job has the same unique key": 1}
    assert (state_of(taken), state_of(other)) == ("failed", "failed")
    what = f"state = failed, handler = {Requested.name}"
    logged = LogEntry.objects.order_by("pk").values_list("change_message", flat=True)
    assert list(logged) == [f"replayed {jobs} jobs: {what}" for jobs in (2, 3, 2)]


def test_not_all_jobs_at_once(ann: Program) -> None:
    make("failed")
    detail = problem(ann.post("/jobs/replay", {}), 422, "invalid")["detail"]
    assert "name a handler, an event or a schedule" in detail
    problem(ann.post("/jobs/replay", {"handler": "x", "limit": 1001}), 422, "invalid")


def test_operations_need_scope_and_permission(ann: Program) -> None:
    job = make("failed")
    bob = program("bob", "jobs:operate", may=("tailrace_jobs.view_job", "tailrace_jobs.add_job"))
    cat = operator("cat", "jobs:read", "jobs:write")
    for path in (f"/jobs/{job.pk}/replay", "/jobs/replay", f"/jobs/{job.pk}/cancel"):
        problem(bob.post(path), 403, "permission-missing")
        problem(cat.post(path), 403, "scope-missing")
    assert state_of(job) == "failed"
