"""The queues by the API: the words of the overview, and who may see them."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tailrace.db import clock
from tailrace.jobs.engine.maintenance import sync_declared
from tailrace.jobs.models import Job, Queue
from tailrace.jobs.platform.inspection.queue_states import MEANINGS
from tailrace.jobs.platform.pages.panel import Shared
from tailrace.jobs.platform.panels import Queues
from tests.sandbox.handlers import Requested
from tests.web.jobs.requesting import operator
from tests.web.program import Program, problem, program

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _queues(db: None) -> None:
    sync_declared.sync()


def queue(ann: Program) -> dict[str, object]:
    """Return what the list says of the queue of test.requested."""
    [result] = [row for row in ann.get("/queues").json() if row["name"] == Requested.name]
    return dict(result)


def test_a_queue_has_its_counts_and_the_word_of_the_overview() -> None:
    ann = operator()
    nothing = {"pending": 0, "due": 0, "running": 0, "failed": 0, "completed": 0}
    assert queue(ann) == nothing | {
        "name": Requested.name, "state": "idle", "oldest_due": None, "max_running": None,
        "rate_limit": None,
    }  # fmt: skip
    now = clock.now()
    for state, due_at in (
        ("pending", now - timedelta(seconds=9)), ("pending", now + timedelta(hours=1)),
        ("running", now), ("failed", now),
    ):  # fmt: skip
        Job.objects.create(handler=Requested.name, state=state, due_at=due_at)
    row = queue(ann)
    assert row["state"] == "running"
    assert nothing | {"pending": 2, "due": 1, "running": 1, "failed": 1} == {
        name: row[name] for name in nothing
    }
    assert str(row["oldest_due"]).endswith("Z")
    Queue.objects.filter(name=Requested.name).update(paused_at=now)
    panel = Queues()
    panel.shared = Shared()
    context = panel.context()
    words = {each["queue"].name: each["state"] for each in context["rows"] + context["quiet"]}
    rows = ann.get("/queues").json()
    assert {each["name"]: each["state"] for each in rows} == words
    assert words[Requested.name] == "paused"
    assert set(words.values()) <= set(MEANINGS)


def test_queues_are_for_those_who_see_them_in_the_admin() -> None:
    problem(program("eve").get("/queues"), 403, "permission-missing")
    token = operator("bob", "jobs:write")
    problem(token.get("/queues"), 403, "scope-missing")
    assert operator("carl", "jobs:read").get("/queues").status_code == 200


def test_the_list_costs_as_many_statements_whatever_is_in_it() -> None:
    ann = operator()
    ann.get("/queues")
    with CaptureQueriesContext(connection) as empty:
        ann.get("/queues")
    Queue.objects.bulk_create(Queue(name=f"test.made_{number}") for number in range(50))
    Job.objects.bulk_create(
        Job(handler=f"test.made_{number % 50}", state="pending") for number in range(500)
    )
    with CaptureQueriesContext(connection) as full:
        assert len(ann.get("/queues").json()) >= 50
    assert len(full) == len(empty)
