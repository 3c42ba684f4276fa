"""The API of flows: list, get, edges, and the operations."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry

from tailrace.jobs.flows.operations import pause_flow
from tailrace.jobs.models import Flow, Job
from tailrace.web.api.jobs.flows import flows as api_flows
from tests.jobs.admin import flows
from tests.web.program import Program, problem, program

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _handlers() -> None:
    flows.register_handlers()


@pytest.fixture
def ann() -> Program:
    return program("ann", "jobs:read", "jobs:operate", may=flows.CHANGE)


def ids(items: list[dict[str, Any]]) -> list[int]:
    return [item["id"] for item in items]


def test_flows_are_listed_by_state_and_name(ann: Program) -> None:
    months = ("May", "June", "July")
    running, paused, failed = (flows.chain(1, f"import of {month}") for month in months)
    pause_flow(paused, "ann")
    flows.ended(failed, ["work"], "failed", 1, 1)
    assert ids(ann.all("/flows")) == [failed.pk, paused.pk, running.pk]
    assert ids(ann.all("/flows", limit=1)) == [failed.pk, paused.pk, running.pk]
    assert ids(ann.all("/flows", state="running")) == [running.pk]
    assert ids(ann.all("/flows", state="paused")) == [paused.pk]
    assert ids(ann.all("/flows", state="failed")) == [failed.pk]
    assert ids(ann.all("/flows", name="of ju", limit=1)) == [failed.pk, paused.pk]
    assert [flow["state"] for flow in ann.all("/flows")] == [
        "completed with failures", "paused", "running",
    ]  # fmt: skip


def test_a_name_is_searched_in_bounded_steps(ann: Program, monkeypatch) -> None:
    monkeypatch.setattr(api_flows, "WINDOW", 2)
    wanted = flows.chain(1, "wanted")
    for _ in range(3):
        flows.chain(1)
    first = ann.get("/flows", name="wanted").json()
    assert first["items"] == []
    assert first["next"]
    assert ids(ann.all("/flows", name="wanted")) == [wanted.pk]


def test_a_flow_has_counts_and_what_took_its_time(ann: Program) -> None:
    flow = flows.diamond()
    flows.created_before(flow, 60)
    flows.ended(flow, ["a"], "completed", 2, 10)
    flows.ended(flow, ["page-2"], "failed", 13, 7)
    answer = ann.get(f"/flows/{flow.pk}").json()
    assert (answer["jobs"], answer["ended"], answer["is_whole"]) == (6, 2, True)
    assert answer["counts"] == {"completed": 1, "failed": 1, "waiting": 4}
    path = [(step["name"], step["waited"], step["ran"]) for step in answer["critical_path"]]
    assert path == [("a", 2, 10), ("page-2", 1, 7)]


def test_edges_have_pages(ann: Program) -> None:
    flow = flows.diamond()
    names = dict(Job.objects.filter(flow_id=flow.pk).values_list("pk", "flow_name"))
    for limit in (1, 2, 50):
        edges = ann.all(f"/flows/{flow.pk}/edges", limit=limit)
        assert [
            (names[edge["parent_id"]], names[edge["job_id"]], edge["need"]) for edge in edges
        ] == [
            ("a", "page-1", "success"), ("a", "page-2", "success"),
            ("page-1", "d", "success"), ("page-2", "d", "success"),
            ("d", "clean", "failure"), ("d", "report", "end"),
        ], limit  # fmt: skip


def test_jobs_name_their_flow_and_are_listed_by_it(ann: Program) -> None:
    flow = flows.chain(2)
    flows.chain(1)
    listed = ann.all("/jobs", flow=flow.pk)
    assert [(job["flow_id"], job["flow_name"]) for job in listed] == [
        (flow.pk, "work-2"), (flow.pk, "work"),
    ]  # fmt: skip
    job = ann.get(f"/jobs/{listed[0]['id']}").json()
    assert job["flow_name"] == "work-2"


def test_operations_change_a_flow_once_for_their_key(ann: Program) -> None:
    flow = flows.diamond()
    key = {"Idempotency-Key": "k"}
    first = ann.post(f"/flows/{flow.pk}/pause", headers=key)
    assert first.json()["flow"]["state"] == "paused"
    assert first.json()["changed"] == 1
    again = ann.post(f"/flows/{flow.pk}/pause", headers=key)
    assert again.json() == first.json()
    assert again["Idempotency-Replayed"] == "true"
    answer = problem(ann.post(f"/flows/{flow.pk}/pause"), 409)
    assert answer["detail"] == f"flow {flow.pk} cannot be paused: it is paused"
    assert ann.post(f"/flows/{flow.pk}/resume").json()["flow"]["state"] == "running"
    cancelled = ann.post(f"/flows/{flow.pk}/cancel", {"clean_up": False}).json()
    assert (cancelled["changed"], cancelled["flow"]["state"]) == (6, "cancelled")
    retried = ann.post(f"/flows/{flow.pk}/retry").json()
    assert retried["flow"]["state"] == "running"
    messages = [entry.change_message for entry in LogEntry.objects.order_by("pk")]
    assert messages == ["paused", "resumed", "cancelled, with the jobs that clean up", "retried"]


def test_a_replay_is_planned_first_and_done_once(ann: Program) -> None:
    flow = flows.chain(2)
    plan = ann.post(f"/flows/{flow.pk}/replay", {"dry_run": True}).json()
    assert plan == {
        "dry_run": True, "flow_id": None, "jobs": 2, "added": 0, "changed": 0, "problems": [],
    }  # fmt: skip
    assert Flow.objects.count() == 1
    key = {"Idempotency-Key": "k"}
    answers = [ann.post(f"/flows/{flow.pk}/replay", {}, headers=key) for _ in range(2)]
    copy = Flow.objects.get(copy_of=flow.pk)
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[1].json()["flow_id"] == copy.pk
    assert answers[0]["Location"] == f"/api/flows/{copy.pk}"


def test_a_flow_with_a_job_that_cannot_be_created_is_not_replayed(ann: Program) -> None:
    flow = flows.chain(2)
    Job.objects.filter(flow_name="work-2").update(handler="test.gone")
    (wrong,) = ann.post(f"/flows/{flow.pk}/replay", {"dry_run": True}).json()["problems"]
    assert (wrong["name"], wrong["handler"], wrong["detail"]) == ("work-2", "test.gone", "")
    problem(ann.post(f"/flows/{flow.pk}/replay", {}), 409)
    sees = program("bob", "jobs:operate", may=(*flows.CHANGE, "tailrace_jobs.view_job_payload"))
    (wrong,) = sees.post(f"/flows/{flow.pk}/replay", {"dry_run": True}).json()["problems"]
    assert "test.gone" in wrong["detail"]
    assert Flow.objects.count() == 1


def test_a_flow_that_does_not_exist_is_not_found(ann: Program) -> None:
    for answer in (
        ann.get("/flows/7"), ann.get("/flows/7/edges"), ann.post("/flows/7/pause"),
        ann.post("/flows/7/replay", {}),
    ):  # fmt: skip
        problem(answer, 404)
