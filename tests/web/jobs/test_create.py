"""POST /api/jobs: what it creates, what it refuses, and requests that are sent again."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry

from tailrace.jobs.models import Job, RequestKey
from tailrace.jobs.runtime import audit
from tests.kit import at_once
from tests.sandbox.handlers import Log, Report, Requested, RequestedNewest
from tests.web.jobs.requesting import operator, send
from tests.web.program import Program, problem, program

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann() -> Program:
    return operator()


def test_a_request_is_a_job(ann: Program, run_jobs) -> None:
    answer = send(ann, priority=0, lane="ann", unique_key="march")
    assert answer.status_code == 201
    job = Job.objects.get()
    assert answer.json() == {
        "id": job.pk, "handler": Requested.name, "state": "pending", "is_new": True,
    }  # fmt: skip
    assert answer["Location"] == f"/api/jobs/{job.pk}"
    assert (job.priority, job.lane, job.unique_key) == (0, "ann", "march")
    assert Report.model_validate(job.payload).title == "March"
    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_id, entry.change_message) == (
        ann.user, str(job.pk), "requested",
    )  # fmt: skip
    run_jobs(Requested.name)
    assert ann.get(f"/jobs/{job.pk}").json()["result"] == {"title": "March"}


def test_a_job_may_be_due_later(ann: Program, clock) -> None:
    due = (clock.now() + timedelta(hours=2)).replace(microsecond=0)
    assert send(ann, due_at=due.isoformat()).status_code == 201
    assert Job.objects.get().due_at == due


@pytest.mark.parametrize(
    ("payload", "pointer", "detail"),
    [
        ({}, "#/payload/title", "Field required"),
        ({"title": "March", "pages": 0}, "#/payload/pages", "greater than or equal to 1"),
        ({"title": "March", "tags": ["a", 5]}, "#/payload/tags/1", "valid string"),
        ({"title": "March", "rate": "fast"}, "#/payload/rate", "valid number"),
        ({"title": "March", "colours": {"a/b": "x"}}, "#/payload/colours/a~1b", "valid integer"),
        ({"title": "March", "pgaes": 5}, "#/payload/pgaes", "not permitted; did you mean 'pages'?"),
    ],
)
def test_a_wrong_payload_is_named_at_its_place(
    ann: Program, payload: dict, pointer: str, detail: str
) -> None:
    (fault,) = problem(send(ann, payload=payload), 422, "invalid")["errors"]
    assert fault["pointer"] == pointer
    assert detail in fault["detail"]
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("fields", "name", "detail"),
    [
        ({"handler": "test.requestde"}, "handler", "did you mean 'test.requested'?"),
        ({"due_at": "2020-01-01T00:00:00Z"}, "due_at", "is in the past; for a job"),
        ({"due_at": "2999-01-01T00:00:00Z"}, "due_at", "more than 366 days in the future"),
        ({"due_at": "2030-01-01T00:00:00"}, "due_at", "timezone"),
        ({"priority": 4}, "priority", "less than or equal to 3"),
        ({"unique_key": ""}, "unique_key", "at least 1"),
        ({"unique_key": "x" * 601}, "unique_key", "at most 600"),
        ({"lane": "x" * 601}, "lane", "at most 600"),
        ({"queue": "x"}, "queue", "not permitted"),
    ],
)
def test_a_wrong_option_is_named(ann: Program, fields: dict, name: str, detail: str) -> None:
    (fault,) = problem(send(ann, **fields), 422, "invalid")["errors"]
    assert fault["pointer"] == f"#/{name}"
    assert detail in fault["detail"]
    assert not Job.objects.exists()


def test_an_unstarted_job_with_the_unique_key_is_the_answer(ann: Program) -> None:
    first = send(ann, unique_key="march").json()
    again = send(ann, unique_key="march", payload={"title": "other"})
    assert again.status_code == 200
    assert again.json() == first | {"is_new": False}
    assert Job.objects.get().payload["title"] == "March"


def test_the_newest_replaces_the_payload_if_the_handler_says_so(ann: Program) -> None:
    first = send(ann, handler=RequestedNewest.name, unique_key="march").json()
    again = send(ann, handler=RequestedNewest.name, unique_key="march", payload={"title": "newest"})
    assert (again.status_code, again.json()["id"]) == (200, first["id"])
    assert Job.objects.get().payload["title"] == "newest"


def test_a_handler_that_states_no_permission_takes_no_requests(ann: Program) -> None:
    refused = problem(send(ann, handler=Log.name, payload=None), 403, "handler-closed")
    assert "jobs of test.log cannot be requested" in refused["detail"]


def test_the_permission_of_the_handler_is_needed() -> None:
    bob = program("bob", "jobs:write", may=("tailrace_jobs.view_job", "tailrace_jobs.replay_job"))
    assert "tailrace_jobs.add_job" in problem(send(bob), 403, "permission-missing")["detail"]


def test_a_repeated_request_gets_its_job(ann: Program, run_jobs) -> None:
    first = send(ann, key="k1")
    run_jobs(Requested.name)
    again = send(ann, key="k1")
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json() | {"state": "completed", "is_new": False}
    assert Job.objects.count() == 1
    assert send(ann, key="k2").json()["id"] != first.json()["id"]


def test_a_key_that_came_with_another_request_is_refused(ann: Program) -> None:
    send(ann, key="k1")
    (fault,) = problem(send(ann, key="k1", priority=2), 422, "key-reused")["errors"]
    assert fault["header"] == "Idempotency-Key"
    assert Job.objects.count() == 1


def test_a_key_stands_for_its_job_for_a_day(ann: Program, clock) -> None:
    first = send(ann, key="k1").json()["id"]
    clock.step(23.9 * 3600)
    assert send(ann, key="k1").json()["id"] == first
    clock.step(0.2 * 3600)
    assert send(ann, key="k1", priority=2).status_code == 201
    assert RequestKey.objects.count() == 1


def test_a_key_is_its_users_own(ann: Program) -> None:
    bob = operator("bob")
    assert send(ann, key="k1").json()["id"] != send(bob, key="k1").json()["id"]


def test_a_refused_request_leaves_its_key_free(ann: Program) -> None:
    problem(send(ann, key="k1", payload={}), 422, "invalid")
    assert send(ann, key="k1").status_code == 201


def test_the_job_of_a_key_may_be_pruned(ann: Program) -> None:
    send(ann, key="k1")
    Job.objects.all().delete()
    assert "was deleted" in problem(send(ann, key="k1"), 410)["detail"]


@pytest.mark.django_db(transaction=True)
def test_fifty_requests_at_once_with_one_key_are_one_job(ann: Program, settings) -> None:
    settings.API_RATE = settings.API_BURST = settings.USER_RATE = settings.USER_BURST = 1000
    answers = at_once(50, lambda _: send(ann, key="k1"))
    assert sorted(answer.status_code for answer in answers) == [200] * 49 + [201]
    assert {answer.json()["id"] for answer in answers} == {Job.objects.get().pk}


@pytest.mark.django_db(transaction=True)
def test_job_and_key_are_one_transaction(ann: Program, monkeypatch) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("the log is full")

    with monkeypatch.context() as broken:
        broken.setattr(audit, "record", fail)
        problem(send(ann, key="k1"), 500)
    assert not Job.objects.exists()
    assert send(ann, key="k1").status_code == 201
