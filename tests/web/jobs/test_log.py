"""The log of a job by the API, and who may read it; and due time and priority."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry

from tailrace.jobs.models import Job, LogLines
from tests.sandbox.handlers import Requested
from tests.web.jobs.requesting import operator
from tests.web.program import problem

pytestmark = pytest.mark.django_db


def _job(state: str = "running", **fields: object) -> Job:
    return Job.objects.create(handler=Requested.name, state=state, **fields)


def _line(job: Job, claim_no: int, number: int, text: str) -> None:
    lines = [[number, "2026-11-23T10:00:00.000+00:00", text]]
    LogLines.objects.create(job=job, claim_no=claim_no, first=number, last=number, lines=lines)


def test_the_newest_claim_is_given_and_followed() -> None:
    ann, job = operator(), _job()
    assert ann.get(f"/jobs/{job.pk}/log").json() == {"claim_no": None, "lines": [], "claims": []}
    for claim_no, number, text in [(1, 1, "old"), (2, 1, "one"), (2, 2, "two")]:
        _line(job, claim_no, number, text)
    log = ann.get(f"/jobs/{job.pk}/log").json()
    assert (log["claim_no"], log["claims"]) == (2, [2, 1])
    assert [line["text"] for line in log["lines"]] == ["one", "two"]
    [line] = ann.get(f"/jobs/{job.pk}/log", after=1).json()["lines"]
    assert line == {"number": 2, "at": "2026-11-23T10:00:00Z", "text": "two"}
    [line] = ann.get(f"/jobs/{job.pk}/log", claim_no=1).json()["lines"]
    assert line["text"] == "old"
    problem(ann.get(f"/jobs/{job.pk + 1}/log"), 404)


def test_a_log_needs_the_permission_to_see_payloads() -> None:
    ann, job = operator(), _job()
    _line(job, 1, 1, "treasure")
    permission = "view_job_payload"
    ann.user.user_permissions.remove(*ann.user.user_permissions.filter(codename=permission))
    response = ann.get(f"/jobs/{job.pk}/log")
    problem(response, 403, "permission-missing")
    assert b"treasure" not in response.content


def test_a_pending_job_is_rescheduled_and_others_are_not(clock) -> None:
    ann, job = operator(), _job("pending", due_at=clock.now())
    later = (clock.now() + timedelta(hours=2)).replace(microsecond=0)
    body = {"due_at": later.isoformat(), "priority": 3}
    assert ann.post(f"/jobs/{job.pk}/reschedule", body).json()["state"] == "pending"
    job.refresh_from_db()
    assert (job.due_at, job.priority) == (later, 3)
    assert ann.post(f"/jobs/{job.pk}/reschedule", {"priority": 0}).status_code == 200
    assert Job.objects.get(pk=job.pk).due_at == later
    assert LogEntry.objects.filter(change_message__startswith="rescheduled: due ").count() == 2
    past = {"due_at": "1999-01-01T00:00:00Z"}
    assert "is in the past" in str(
        problem(ann.post(f"/jobs/{job.pk}/reschedule", past), 422, "invalid")
    )
    running = _job("running")
    refused = problem(ann.post(f"/jobs/{running.pk}/reschedule", {"priority": 0}), 409)
    assert "it is running" in refused["detail"]
