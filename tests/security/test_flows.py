"""Flows: what an attacker might get by the pages and the API of flows."""

import base64

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tailrace.jobs.engine.waking import dependents
from tailrace.jobs.flows import NewFlow, operations
from tailrace.jobs.models import Dependency, Flow, Job
from tailrace.jobs.platform.inspection.flows import folding, graph
from tailrace.jobs.platform.inspection.visibility import masked_error
from tests.jobs import operators
from tests.jobs.admin import flows
from tests.web.program import problem, program

pytestmark = pytest.mark.django_db
FLOWS = "/admin/tailrace_jobs/flow/"
OPERATIONS = ("cancel", "pause", "resume", "retry", "replay")


@pytest.fixture(autouse=True)
def _handlers() -> None:
    flows.register_handlers()


@pytest.mark.parametrize("right", ["tailrace_jobs.view_flow", "tailrace_jobs.view_job"])
def test_half_of_the_permissions_opened_a_flow(right: str) -> None:
    flow = flows.chain(1)
    staff, bob = operators.client("staff", right), program("bob", "jobs:read", may=(right,))
    for address in ("", f"{flow.pk}/change/", f"{flow.pk}/live/", f"{flow.pk}/replay/"):
        assert staff.get(FLOWS + address).status_code == 403, address
    for address in ("/flows", f"/flows/{flow.pk}", f"/flows/{flow.pk}/edges"):
        problem(bob.get(address), 403, "permission-missing")


@pytest.mark.parametrize("name", OPERATIONS)
def test_who_may_only_see_or_only_change_operated_a_flow(name: str) -> None:
    flow = flows.diamond()
    before = list(
        Job.objects.filter(flow_id=flow.pk).order_by("pk").values_list("state", flat=True)
    )
    bodies = {"cancel": {}, "replay": {}}
    for number, may in enumerate((flows.VIEW, flows.CHANGE[2:], flows.CHANGE[1:])):
        bob = program(f"bob{number}", "jobs:operate", may=may)
        answer = bob.post(f"/flows/{flow.pk}/{name}", bodies.get(name))
        problem(answer, 403, "permission-missing")
    reader = program("reader", "jobs:read", may=flows.CHANGE)
    problem(reader.post(f"/flows/{flow.pk}/{name}", bodies.get(name)), 403, "scope-missing")
    assert (
        list(Job.objects.filter(flow_id=flow.pk).order_by("pk").values_list("state", flat=True))
        == before
    )
    assert Flow.objects.count() == 1


def test_a_link_operated_a_flow() -> None:
    """A GET changes nothing."""
    flow = flows.diamond()
    keeper = operators.client("keeper", *flows.CHANGE)
    for name in ("cancel", "pause", "resume", "retry"):
        assert keeper.get(f"{FLOWS}{flow.pk}/{name}/").status_code == 405
    keeper.get(f"{FLOWS}{flow.pk}/replay/")
    assert Flow.objects.count() == 1


def test_names_and_payloads_of_hidden_jobs_were_read(settings) -> None:
    """Of a job about a hidden project only ids, queues, states and times are shown."""
    settings.OBS_UNKNOWN_PROJECTS = "hidden"
    settings.OBS_BACKENDS = {"main": "http://127.0.0.1:9"}
    payload = {"backend": "main", "project": "hidden:treasure", "package": "map"}
    flow = NewFlow("refresh")
    first = flow.add("builds.update_backend_infos", payload, name="treasure")
    flow.add("builds.update_backend_infos", payload, name="treasure-2", after=first)
    flow.add("builds.update_backend_infos", payload, name="treasure-3", after=["treasure-2", first])
    flow.group("builds.update_backend_infos", [payload] * 20, name="treasures", after="treasure-3")
    id = flow.enqueue()
    made = Flow.objects.get(pk=id)
    flows.ended(made, ["treasure"], "failed", 1, 1)
    Job.objects.filter(flow_id=id).update(error="treasure is gone")
    may = (*flows.CHANGE, "tailrace_jobs.view_job_payload")
    keeper, ann = operators.client("keeper", *may), program("ann", may=may)
    job = Job.objects.get(flow_id=id, flow_name="treasure-2").pk
    pages = [f"{FLOWS}{id}/change/", f"{FLOWS}{id}/live/", f"{FLOWS}{id}/replay/", FLOWS,
             f"/admin/tailrace_jobs/job/{job}/change/", f"/admin/tailrace_jobs/job/?flow={id}",
             f"/admin/tailrace_jobs/job/?q=flow:{id}"]  # fmt: skip
    answers = [keeper.get(page) for page in pages]
    answers += [ann.get(f"/flows/{id}"), ann.get(f"/flows/{id}/edges"), ann.get("/jobs", flow=id)]
    answers += [ann.get(f"/jobs/{job}"), ann.post(f"/flows/{id}/replay", {"dry_run": True})]
    broken = {key: value for key, value in payload.items() if key != "package"}
    Job.objects.filter(flow_name="treasure-3").update(payload=broken)
    answers += [ann.post(f"/flows/{id}/replay", {"dry_run": True})]
    for answer in answers:
        assert answer.status_code == 200
        assert "hidden:treasure" not in answer.content.decode(), answer.request["PATH_INFO"]
        assert "treasure" not in answer.content.decode(), answer.request["PATH_INFO"]
    assert len(operators.client("sees", *may, "tailrace_events.view_hidden")
               .get(pages[0]).content.decode().split("treasure")) > 5  # fmt: skip


@pytest.mark.parametrize(
    "cursor",
    ["x", "WzFd", base64.urlsafe_b64encode(b'["1",2]').decode(), "WzEsMiwzXQ",
     base64.urlsafe_b64encode(b"[9223372036854775808,1]").decode().rstrip("=")],
)  # fmt: skip
def test_a_forged_cursor(cursor: str) -> None:
    flow = flows.diamond()
    ann = program("ann", "jobs:read", may=flows.VIEW)
    problem(ann.get(f"/flows/{flow.pk}/edges", cursor=cursor), 422, "invalid")
    if cursor != "WzFd":  # [1] is a cursor of the list
        problem(ann.get("/flows", cursor=cursor), 422, "invalid")


def test_a_cursor_of_another_flow_gave_its_edges() -> None:
    first, second = flows.diamond(), flows.diamond()
    ann = program("ann", "jobs:read", may=flows.VIEW)
    cursor = ann.get(f"/flows/{second.pk}/edges", limit=1).json()["next"]
    assert ann.get(f"/flows/{first.pk}/edges", cursor=cursor).json()["items"] == []


@pytest.mark.parametrize("value", ["0", "-1", "1 OR 1=1", str(2**63), "٣"])
def test_an_odd_id_of_a_flow(value: str) -> None:
    flows.chain(1)
    reader = operators.client("reader", *flows.VIEW)
    assert reader.get(f"/admin/tailrace_jobs/job/?flow={value}").status_code == 200
    assert reader.get(f"{FLOWS}?q={value}").status_code == 200
    assert reader.get(f"{FLOWS}{value}/change/").status_code == 302


def test_a_name_ran_a_script() -> None:
    flow = NewFlow("<script>alert(1)</script>")
    flow.add("test.work", name='"><script>alert(2)</script>')
    flow.add("test.work", name="b", after_end='"><script>alert(2)</script>')
    id = flow.enqueue()
    keeper = operators.client("keeper", *flows.CHANGE)
    for page in (f"{FLOWS}{id}/change/", f"{FLOWS}{id}/replay/", FLOWS):
        assert "<script>alert" not in keeper.get(page).content.decode(), page


def test_the_page_of_a_huge_flow_grew_with_it(monkeypatch) -> None:
    """The number of read rows, of nodes and lines, and of statements is bounded."""
    monkeypatch.setattr(graph, "MAX_JOBS", 2000)
    monkeypatch.setattr(graph, "MAX_EDGES", 3000)
    flow = NewFlow("wide")
    first = [flow.add("test.once", name=f"a{n}x") for n in range(300)]
    for n in range(2200):
        flow.add("test.once", name=f"b{n}x", after=first[n % 290 : n % 290 + 3])
    id = flow.enqueue()
    reader = operators.client("reader", *flows.VIEW)
    with CaptureQueriesContext(connection) as captured:
        text = reader.get(f"{FLOWS}{id}/change/").content.decode()
    assert len(captured) < 30
    assert text.count('class="tr-node ') <= folding.MAX_NODES
    assert text.count('class="tr-edge ') <= folding.MAX_LINES + 2
    assert len(text) < 300_000
    read = graph.read_graph(id)
    assert (len(read.jobs), len(read.edges), read.is_whole) == (2000, 3000, False)
    ann = program("ann", "jobs:read", may=flows.VIEW)
    assert len(ann.get(f"/flows/{id}/edges", limit=200).content) < 20_000
    assert ann.get(f"/flows/{id}").json()["is_whole"] is False


def test_jobs_in_a_circle_were_walked_for_ever() -> None:
    """Rows that no code writes: nothing loops."""
    flow = flows.diamond()
    jobs = dict(Job.objects.filter(flow_id=flow.pk).values_list("flow_name", "pk"))
    Dependency.objects.create(job_id=jobs["a"], parent_id=jobs["d"], position=0)
    flows.ended(flow, jobs, "completed", 1, 1)
    reader = operators.client("reader", *flows.VIEW)
    context = reader.get(f"{FLOWS}{flow.pk}/change/").context
    assert len(context["drawing"]["nodes"]) == 6
    assert len(context["path"]) <= 50


@pytest.mark.parametrize(
    "error",
    [
        f"{dependents.WAITED}7, which was failed",
        dependents.NOT_NEEDED,
        operations.OVERDUE,
        "cancelled by ann with its flow",
    ],
)
def test_only_errors_that_the_engine_writes_are_shown_to_all(error: str) -> None:
    assert masked_error(error) == error
    assert error not in masked_error(f"{error}: secret")
