"""Programs that request and operate jobs, for the tests of the API of jobs."""

from typing import Any

from django.http import HttpResponse

from tests.sandbox.handlers import Requested
from tests.web.program import Program, program

OPERATOR = (
    "tailrace_jobs.add_job", "tailrace_jobs.view_job", "tailrace_jobs.replay_job",
    "tailrace_jobs.view_job_payload", "tailrace_jobs.view_queue",
)  # fmt: skip


def operator(login: str = "ann", *scopes: str) -> Program:
    """Return a program of a user with all permissions on jobs."""
    return program(login, *(scopes or ("jobs:read", "jobs:write", "jobs:operate")), may=OPERATOR)


def send(ann: Program, key: str | None = None, **fields: Any) -> HttpResponse:
    """Request a report."""
    body = {"handler": Requested.name, "payload": {"title": "March"}} | fields
    headers = {} if key is None else {"headers": {"Idempotency-Key": key}}
    return ann.post("/jobs", body, **headers)
