"""The chain of an event by the API: its place, its bounds, and what is left out of it."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tailrace.events.models import Event
from tailrace.jobs.platform.inspection.details.chain import MAX_EFFECTS, MAX_JOBS
from tests.jobs import operators
from tests.jobs.test_chain import event
from tests.web.jobs.requesting import OPERATOR
from tests.web.program import Program, problem, program

pytestmark = pytest.mark.django_db
MAY = ("tailrace_events.view_event", *OPERATOR)


@pytest.fixture
def ann() -> Program:
    return program("ann", may=MAY)


def test_a_chain_has_causes_effects_and_jobs(ann: Program) -> None:
    root = event()
    middle = event(root)
    leaf = event(middle)
    other = event(root)
    job = operators.job("failed", event=middle, error="no such lamp")
    chains = [ann.get(f"/events/{id}/chain").json() for id in (root.pk, leaf.pk)]
    assert chains[0] == chains[1]
    rows = chains[0]["events"]
    assert [(row["id"], row["parent"], row["level"], row["state"]) for row in rows] == [
        (root.pk, None, 0, "no jobs"),
        (middle.pk, root.pk, 1, "has failures"),
        (leaf.pk, middle.pk, 2, "no jobs"),
        (other.pk, root.pk, 1, "no jobs"),
    ]
    (shown,) = rows[1]["jobs"]
    assert (shown["id"], shown["state"], shown["error"]) == (job.pk, "failed", "no such lamp")
    assert not rows[0]["has_more_effects"]


def test_a_chain_needs_what_its_page_needs() -> None:
    id = event().pk
    problem(program("bob", may=("tailrace_events.view_event",)).get(f"/events/{id}/chain"), 403,
            "permission-missing")  # fmt: skip
    problem(program("eve", may=("tailrace_jobs.view_job",)).get(f"/events/{id}/chain"), 403,
            "permission-missing")  # fmt: skip
    narrow = Program(program("carl", may=MAY).user, "events:read")
    assert narrow.get(f"/events/{id}/chain").json()["events"][0]["jobs"] is None


def test_errors_in_a_chain_need_the_permission_to_see_payloads() -> None:
    root = event()
    operators.job("failed", event=root, error="treasure")
    bob = program("bob", may=("tailrace_events.view_event", "tailrace_jobs.view_job"))
    assert "treasure" not in bob.get(f"/events/{root.pk}/chain").content.decode()


def test_a_chain_is_bounded(ann: Program) -> None:
    root = event()
    effects = Event.objects.bulk_create(
        Event(source="many", source_id=str(number), type=operators.LampLit.name, cause=root)
        for number in range(MAX_EFFECTS + 1)
    )
    for number in range(MAX_JOBS + 1):
        operators.job("completed", event=effects[0], routing_key=str(number))
    with CaptureQueriesContext(connection) as statements:
        rows = ann.get(f"/events/{root.pk}/chain").json()["events"]
    assert len(statements) < 30
    assert (len(rows), rows[0]["has_more_effects"]) == (1 + MAX_EFFECTS, True)
    assert (len(rows[1]["jobs"]), rows[1]["has_more_jobs"]) == (MAX_JOBS, True)


def test_no_event_no_chain(ann: Program) -> None:
    problem(ann.get("/events/99999/chain"), 404)
