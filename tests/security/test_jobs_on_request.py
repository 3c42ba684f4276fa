"""Jobs on request: what an attacker might get by the API and the form of the admin."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tailrace.jobs.engine import registry
from tailrace.jobs.models import Job
from tailrace.jobs.platform.inspection.details import connected
from tailrace.jobs.platform.requests import request_job as module
from tailrace.jobs.platform.requests.job_request import JobRequest
from tailrace.web.platform.personal_data import RequestKeys
from tests.kit import another_transaction
from tests.sandbox.handlers import Requested
from tests.web.jobs.requesting import OPERATOR, operator, send
from tests.web.program import problem, program

pytestmark = pytest.mark.django_db
OPEN = {
    "builds.update_backend_infos",
    "protection.darkwatch_scan",
    "protection.hometitle_scan",
    "protection.notifications_send",
    "protection.reports_generate",
    "protection.voiceprint_batch",
}
"""Handlers of the platform that take requests. One more needs a look at its payload: whoever has
its permission may send any."""


def test_only_handlers_that_were_looked_at_take_requests() -> None:
    handlers = registry.all_handlers().values()
    ours = [handler for handler in handlers if not handler.name.startswith("test.")]
    assert {handler.name for handler in ours if handler.request_permission} == OPEN


@pytest.mark.parametrize("name", sorted(OPEN))
def test_a_plain_user_requested_a_job(name: str) -> None:
    """A token with the scope gives nothing that its user may not do."""
    bob = program("bob", "jobs:write")
    request = {"handler": name, "payload": {"account": bob.user.pk}}
    answer = problem(bob.post("/jobs", request), 403, "permission-missing")
    assert "tailrace_jobs.add_job" in answer["detail"] or name.startswith("builds.")
    assert not Job.objects.exists()


def test_a_superuser_ran_the_deletion_of_an_account() -> None:
    ann = operator()
    ann.user.is_superuser = True
    ann.user.save()
    victim = {"handler": "web.delete_account", "payload": {"user": 1}}
    problem(ann.post("/jobs", victim), 403, "handler-closed")
    assert not Job.objects.filter(handler="web.delete_account").exists()


def test_a_handlers_name_was_guessed_by_the_suggestion() -> None:
    bob = program("bob", "jobs:write")
    answer = problem(bob.post("/jobs", {"handler": "test.requestde"}), 422, "invalid")
    assert "did you mean" not in answer["detail"]


def test_a_token_to_read_requested_and_cancelled_jobs() -> None:
    job = Job.objects.create(handler=Requested.name)
    reader = operator("ann", "jobs:read")
    problem(send(reader), 403, "scope-missing")
    problem(reader.post(f"/jobs/{job.pk}/cancel"), 403, "scope-missing")
    assert Job.objects.get(handler=Requested.name).state == "pending"


def test_the_key_of_another_user_told_of_their_job() -> None:
    ann, bob = operator("ann"), operator("bob")
    first = send(ann, key="k").json()["id"]
    assert send(bob, key="k", payload={"title": "mine"}).json()["id"] != first


def test_who_lost_the_permission_used_the_key_of_before() -> None:
    ann = operator()
    assert send(ann, key="k").status_code == 201
    ann.user.user_permissions.clear()
    problem(send(ann, key="k"), 403, "permission-missing")


@pytest.mark.django_db(transaction=True)
def test_an_open_transaction_held_requests_for_ever(monkeypatch) -> None:
    monkeypatch.setattr(module, "LOCK_SECONDS", 0.2)
    ann = operator()
    taken = """INSERT INTO tailrace_jobs_requestkey (user_id, key, digest, created_at)
               VALUES (%s, 'k', '', now())"""
    with another_transaction(taken, ann.user.pk):
        answer = send(ann, key="k")
        problem(answer, 409, "key-in-use")
        assert answer["Retry-After"] == "2"
    job = """INSERT INTO tailrace_jobs_job (handler, unique_key, routing_key, state, priority, lane,
               attempt, claim_no, worker, isolate, progress_note, error, cancel_requested)
             VALUES (%s, 'u', '', 'pending', 1, '', 0, 0, '', false, '', '', false)"""
    with another_transaction(job, Requested.name):
        problem(send(ann, unique_key="u"), 503, "busy")
    assert send(ann, key="k", unique_key="u").status_code == 201


def test_keys_of_any_length_were_stored() -> None:
    ann = operator()
    for key in ("x" * 256, ""):
        (fault,) = problem(send(ann, key=key), 422, "invalid")["errors"]
        assert "Idempotency-Key" in str(fault).replace("_", "-").title().replace(" ", "")


def test_a_payload_of_a_thousand_errors_filled_the_answer() -> None:
    answer = problem(
        send(operator(), payload={"tags": [1] * 5000, "title": "March"}), 422, "invalid"
    )
    assert len(answer["errors"]) == 100


def test_the_cost_of_a_dry_run_followed_the_table(settings) -> None:
    ann = operator()
    Job.objects.bulk_create(Job(handler=Requested.name, state="failed") for _ in range(50))
    with CaptureQueriesContext(connection) as captured:
        ann.post("/jobs/replay", {"handler": Requested.name, "dry_run": True})
    selects = [each["sql"] for each in captured if '"tailrace_jobs_job"' in each["sql"]]
    assert selects
    assert all(" LIMIT " in select for select in selects)


def test_a_replay_of_many_costs_as_one() -> None:
    ann = operator()
    before = _left(ann.get("/handlers"))
    assert before - _left(ann.post("/jobs/replay", {"handler": "x"})) >= 4


def _left(answer) -> int:
    return int(answer["RateLimit"].split("r=")[1].split(";")[0])


def test_the_keys_of_a_person_stayed_after_their_account() -> None:
    ann = operator()
    send(ann, key="k")
    assert RequestKeys().delete(ann.user) == 1
    assert RequestKeys().delete(ann.user) == 0


def test_the_digest_of_a_request_is_that_of_all_its_parts() -> None:
    request = JobRequest("a", {"x": 1}, unique_key="k")
    others = [JobRequest("b", {"x": 1}, unique_key="k"), JobRequest("a", {"x": 2}, unique_key="k"),
              JobRequest("a", {"x": 1}), JobRequest("a", {"x": 1}, unique_key="k", lane="l"),
              JobRequest("a", {"x": 1}, unique_key="k", priority=1)]  # fmt: skip
    assert request.digest() == JobRequest("a", {"x": 1}, unique_key="k").digest()
    assert request.digest() not in {other.digest() for other in others}


def test_jobs_connected_without_end_were_walked(monkeypatch) -> None:
    """Of a long chain, a circle and many dependents no more than the limit is looked at."""
    monkeypatch.setattr(connected, "MAX_JOBS", 20)
    chain = [Job.objects.create(handler="test.a").pk]
    for _ in range(50):
        chain.append(Job.objects.create(handler="test.a", after_id=chain[-1]).pk)
    ann = operator()
    assert (
        len(ann.all("/jobs", connected_with=chain[0]))
        == len(ann.all("/jobs", connected_with=chain[50]))
        == 20
    )
    Job.objects.filter(pk=chain[0]).update(after=chain[4])
    assert len(ann.all("/jobs", connected_with=chain[2])) == 20
    Job.objects.bulk_create(Job(handler="test.a", after_id=chain[50]) for _ in range(50))
    assert len(ann.all("/jobs", connected_with=chain[50])) == 20
    problem(ann.get("/jobs", connected_with="1 OR 1=1"), 422, "invalid")
    problem(ann.get("/jobs", connected_with=2**63), 422, "invalid")


def test_hidden_jobs_were_read(settings) -> None:
    """Of a job about a hidden project only ids, queues, states and times are shown."""
    settings.OBS_UNKNOWN_PROJECTS = "hidden"
    settings.OBS_BACKENDS = {"main": "http://127.0.0.1:9"}
    ann = program("ann", may=tuple(set(OPERATOR)))
    payload = {"backend": "main", "project": "hidden:treasure", "package": "map"}
    job = Job.objects.create(
        handler="builds.update_backend_infos", payload=payload, lane="main:hidden:treasure/map",
        unique_key="main:hidden:treasure/map", state="failed", error="treasure is gone",
        result={"treasure": 1},
    )  # fmt: skip
    for answer in (
        ann.get(f"/jobs/{job.pk}"), ann.get("/jobs"), ann.get("/jobs", connected_with=job.pk),
        ann.post("/jobs/replay", {"handler": job.handler, "dry_run": True}),
    ):  # fmt: skip
        assert answer.status_code == 200
        assert str(job.pk) in answer.content.decode()
        assert "treasure" not in answer.content.decode()
