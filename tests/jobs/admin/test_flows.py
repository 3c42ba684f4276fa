"""The admin of flows: the list, the page with the graph, the actions and the replay."""

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tailrace.jobs.flows.operations import pause_flow
from tailrace.jobs.models import Flow, Job
from tailrace.jobs.platform.admin.pages import flow as flow_page
from tailrace.jobs.platform.inspection.flows import folding, listing
from tests.jobs import operators
from tests.jobs.admin import flows
from tests.jobs.admin.flows import CHANGE, VIEW

pytestmark = pytest.mark.django_db
FLOWS = "/admin/tailrace_jobs/flow/"


@pytest.fixture(autouse=True)
def _handlers() -> None:
    flows.register_handlers()


@pytest.fixture
def reader() -> Client:
    return operators.client("reader", *VIEW)


@pytest.fixture
def keeper() -> Client:
    return operators.client("keeper", *CHANGE)


def page(client: Client, flow: Flow) -> str:
    answer = client.get(f"{FLOWS}{flow.pk}/change/")
    assert answer.status_code == 200
    return answer.content.decode()


def listed(client: Client, query: str = "") -> list[int]:
    return [flow.pk for flow in client.get(FLOWS + query).context["cl"].result_list]


def states(flow: Flow) -> dict[str, str]:
    return dict(Job.objects.filter(flow_id=flow.pk).values_list("flow_name", "state"))


# --- the list -------------------------------------------------------------------------------------


def test_the_list_has_the_newest_first_with_states_and_counts(reader: Client) -> None:
    first, second = flows.chain(2), flows.diamond()
    pause_flow(second, "ann")
    flows.ended(first, ["work", "work-2"], "completed", 1, 2)
    assert listed(reader) == [second.pk, first.pk]
    text = reader.get(FLOWS).content.decode()
    assert "2 of 2" in text
    assert "0 of 6" in text
    for state in ("paused", "completed"):
        assert re.search(rf"<span[^>]*>\s*{state}\s*</span>", text), state


def test_flows_are_filtered_by_state_and_found_by_name(reader: Client) -> None:
    running, paused, failed = flows.chain(1), flows.chain(1), flows.chain(1, "import of March")
    pause_flow(paused, "ann")
    flows.ended(failed, ["work"], "failed", 1, 1)
    assert listed(reader, "?state=running") == [running.pk]
    assert listed(reader, "?state=paused") == [paused.pk]
    assert listed(reader, "?state=failed") == [failed.pk]
    assert listed(reader, "?state=nothing") == []
    assert listed(reader, "?q=of+march") == [failed.pk]
    assert listed(reader, f"?q={paused.pk}") == [paused.pk]
    assert listed(reader, "?q=%25") == []


def test_the_list_has_pages(reader: Client) -> None:
    made = [flows.chain(1).pk for _ in range(27)][::-1]
    assert listed(reader) == made[:25]
    older = reader.get(FLOWS).context["cl"].older_url
    assert listed(reader, older) == made[25:]


def test_a_filter_jumps_from_flow_to_flow(reader: Client, monkeypatch) -> None:
    monkeypatch.setattr(listing, "MOST", 2)
    made = [flows.chain(1).pk for _ in range(3)]
    running = listing.in_state(Flow.objects.order_by("-pk"), "running")
    assert list(running.values_list("pk", flat=True)) == made[:0:-1]


# --- the page -------------------------------------------------------------------------------------


def test_a_page_has_each_job_by_name_and_state(reader: Client) -> None:
    flow = flows.diamond()
    flows.ended(flow, ["a"], "completed", 1, 2)
    flows.ended(flow, ["page-1"], "failed", 3, 1)
    text = page(reader, flow)
    jobs = {job.flow_name: job for job in Job.objects.filter(flow_id=flow.pk)}
    for name, job in jobs.items():
        node = text.partition(f'id="node-{job.pk}"')[2].partition("</a>")[0]
        assert f"tr-{job.state}" in text
        assert f">{name}</text>" in node
        assert f'href="/admin/tailrace_jobs/job/{job.pk}/change/"' in node
    assert "a: completed, job" in text
    assert "page-1: failed, job" in text
    assert "2 of 6 jobs ended" in text


def test_lines_differ_by_what_a_job_needs(reader: Client) -> None:
    drawing = reader.get(f"{FLOWS}{flows.diamond().pk}/change/").context["drawing"]
    assert {line["title"]: line["need"] for line in drawing["lines"]} == {
        "page-1 waits for a: success": "success",
        "page-2 waits for a: success": "success",
        "d waits for page-1: success": "success",
        "d waits for page-2: success": "success",
        "clean waits for d: runs after a failure": "failure",
        "report waits for d: any end": "end",
    }


def test_layers_go_by_the_longest_path() -> None:
    flow = flows.NewFlow("layers")
    first = flow.add(flows.Working, name="first")
    second = flow.add(flows.Working, name="second", after=first)
    flow.add(flows.Other, name="last", after=[first, second])
    id = flow.enqueue()
    graph = flow_page.read_graph(id)
    layers = {graph.jobs[job].name: layer for job, layer in graph.layers().items()}
    assert layers == {"first": 0, "second": 1, "last": 2}


def test_a_job_that_is_added_later_is_drawn_before_the_job_that_waits_for_it() -> None:
    flow = flows.diamond()
    late = Job.objects.create(
        handler="test.work", flow_id=flow.pk, flow_name="late@1", state="running"
    )
    child = Job.objects.get(flow_id=flow.pk, flow_name="d")
    from tailrace.jobs.models import Dependency

    Dependency.objects.create(job_id=child.pk, parent_id=late.pk, position=2)
    layers = flow_page.read_graph(flow.pk).layers()
    assert layers[late.pk] < layers[child.pk]


def test_jobs_that_are_alike_become_one_node(reader: Client) -> None:
    flow = flows.fan_out(30)
    flows.ended(flow, ["stage", *(f"page-{n}" for n in range(1, 21))], "completed", 1, 2)
    flows.ended(flow, ["page-21"], "failed", 1, 2)
    drawing = reader.get(f"{FLOWS}{flow.pk}/change/").context["drawing"]
    by_label = {each.label: each for each in drawing["nodes"]}
    assert set(by_label) == {"stage", "30 × page", "publish", "remove files"}
    group = by_label["30 × page"]
    assert group.title == "page: 30 jobs, 1 failed, 9 waiting, 20 completed"
    assert group.node.state == "failed"
    assert group.address == f"/admin/tailrace_jobs/job/?flow={flow.pk}&queue=test.work"
    assert len(drawing["lines"]) == 3


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("page-12", "page"), ("page@99", "page"), ("page-12@99", "page"),
        ("album/page-3", "album/page"), ("album-7/read", "album/read"),
        ("page", "page"), ("utf-8 text", "utf-8 text"), ("-1", ""),
    ],
)  # fmt: skip
def test_the_base_of_a_name(name: str, base: str) -> None:
    assert folding.base_name(name) == base


def test_what_took_the_time_is_the_path_of_the_last_parents(reader: Client) -> None:
    flow = flows.diamond()
    flows.created_before(flow, 100)
    flows.ended(flow, ["a"], "completed", 5, 10)
    flows.ended(flow, ["page-1"], "completed", 16, 2)
    flows.ended(flow, ["page-2"], "completed", 20, 30)
    flows.ended(flow, ["d"], "completed", 51, 4)
    flows.ended(flow, ["clean"], "skipped", 0, 0)
    Job.objects.filter(flow_name="clean").update(started_at=None)
    path = reader.get(f"{FLOWS}{flow.pk}/change/").context["path"]
    steps = [each["step"] for each in path]
    assert [(step.job.name, step.waited, step.ran) for step in steps] == [
        ("a", 5, 10),
        ("page-2", 5, 30),
        ("d", 1, 4),
    ]
    assert [float(each["begun"]) for each in path] == pytest.approx([9.09, 36.36, 92.73], abs=0.01)


def test_a_large_flow_is_drawn_in_bounded_size(reader: Client) -> None:
    flow = flows.fan_out(3000)
    with CaptureQueriesContext(connection) as captured:
        text = page(reader, flow)
    assert len(captured) < 30
    assert len(text) < 100_000
    assert "3,000 × page" in text
    assert 'aria-label="Table of the jobs"' not in text  # of few jobs only


def test_of_a_long_chain_the_first_steps_are_drawn(reader: Client) -> None:
    flow = flows.chain(300)
    text = page(reader, flow)
    assert text.count('class="tr-node ') == folding.MAX_NODES
    assert "100 jobs of later steps are not drawn" in text
    assert f"/admin/tailrace_jobs/job/?flow={flow.pk}" in text


def test_a_flow_that_cannot_be_read_as_a_whole_says_so(reader: Client, monkeypatch) -> None:
    from tailrace.jobs.platform.inspection.flows import graph

    monkeypatch.setattr(graph, "MAX_JOBS", 10)
    assert "too large to be read as a whole" in page(reader, flows.fan_out(30))
    monkeypatch.setattr(graph, "MAX_JOBS", 100)
    monkeypatch.setattr(graph, "MAX_EDGES", 10)
    assert "too large to be read as a whole" in page(reader, flows.fan_out(30))


def test_the_page_is_updated_while_the_flow_is_under_way(reader: Client) -> None:
    flow = flows.diamond()
    (address,) = re.findall(r'hx-get="([^"]+/live/[^"]+)"', page(reader, flow))
    address = address.replace("&amp;", "&")
    assert reader.get(address).status_code == 204
    flows.ended(flow, ["a"], "completed", 1, 2)
    answer = reader.get(address).content.decode()
    assert "1 of 6 jobs ended" in answer
    assert 'id="flow-graph" hx-swap-oob="true"' in answer
    assert "out of date" not in answer
    flows.ended(flow, states(flow), "completed", 1, 2)
    answer = reader.get(address).content.decode()
    assert "out of date" in answer
    assert "hx-get" not in answer


def test_a_job_leads_to_its_flow_and_to_its_relatives(reader: Client) -> None:
    flow = flows.diamond()
    jobs = {job.flow_name: job for job in Job.objects.filter(flow_id=flow.pk)}
    text = reader.get(f"/admin/tailrace_jobs/job/{jobs['d'].pk}/change/").content.decode()
    assert f'href="{FLOWS}{flow.pk}/change/"' in text
    assert ", as d" in text
    parents = text.partition("Jobs that this job waits for")[2].partition("</section>")[0]
    assert [name for name in jobs if f">{name} {jobs[name].pk}<" in parents] == ["page-1", "page-2"]
    children = text.partition("Jobs that wait for this job")[2].partition("</section>")[0]
    assert [name for name in jobs if f">{name} {jobs[name].pk}<" in children] == ["clean", "report"]
    assert "runs after a failure" in children
    text = reader.get(f"/admin/tailrace_jobs/job/{jobs['page-1'].pk}/change/").content.decode()
    assert f">a {jobs['a'].pk}<" in text  # one parent has no row


def test_jobs_are_filtered_by_flow(reader: Client) -> None:
    first, second = flows.chain(2), flows.chain(1)
    mine = list(Job.objects.filter(flow_id=first.pk).order_by("-pk"))
    for query in (f"?flow={first.pk}", f"?q=flow:{first.pk}"):
        answer = reader.get(f"/admin/tailrace_jobs/job/{query}")
        assert list(answer.context["cl"].result_list) == mine, query
        assert not answer.context["cl"].looked_at
    assert second.pk != first.pk
    text = reader.get("/admin/tailrace_jobs/job/?q=flow:x").content.decode()
    assert "flow: takes a number" in text


# --- the actions ----------------------------------------------------------------------------------


def act(client: Client, flow: Flow, name: str, **form: str) -> str:
    answer = client.post(f"{FLOWS}{flow.pk}/{name}/", form, follow=True)
    assert answer.status_code == 200
    return " ".join(str(message) for message in answer.context["messages"])


def entries() -> list[str]:
    return [entry.change_message for entry in LogEntry.objects.order_by("pk")]


def test_a_flow_is_paused_and_resumed(keeper: Client) -> None:
    flow = flows.diamond()
    assert act(keeper, flow, "pause") == "The flow was paused: 1 job held back."
    assert set(states(flow).values()) == {"waiting"}
    assert "paused by keeper" in page(keeper, flow)
    text = act(keeper, flow, "pause")
    assert text == f"flow {flow.pk} cannot be paused: it is paused."
    assert act(keeper, flow, "resume") == "The flow was resumed: 1 job released."
    assert states(flow)["a"] == "pending"
    assert entries() == ["paused", "resumed"]


def test_a_cancelled_flow_runs_what_cleans_up_if_that_is_chosen(keeper: Client) -> None:
    first, second = flows.diamond(), flows.diamond()
    assert act(keeper, first, "cancel", clean_up="yes").startswith("The flow was cancelled: 4 jobs")
    assert states(first)["clean"] == "pending"
    assert act(keeper, second, "cancel", clean_up="no").startswith("The flow was cancelled: 6 jobs")
    assert set(states(second).values()) == {"cancelled"}
    assert entries() == ["cancelled", "cancelled, with the jobs that clean up"]
    assert act(keeper, second, "cancel") == (
        f"flow {second.pk} cannot be cancelled: it is cancelled."
    )


def test_a_flow_is_retried_from_its_failed_jobs_on(keeper: Client, run_jobs) -> None:
    flow = flows.diamond()
    assert "cannot be retried: it is running" in act(keeper, flow, "retry")
    Job.objects.filter(flow_name="page-1").update(payload={"do": "permanent", "note": "no"})
    run_jobs()
    assert states(flow)["d"] == "cancelled"
    Job.objects.filter(flow_name="page-1").update(payload={"note": "b"})
    assert act(keeper, flow, "retry").startswith("The flow was retried: ")
    run_jobs()
    assert states(flow)["d"] == "completed"
    assert entries() == ["retried"]


@pytest.mark.parametrize("action", ["pause", "resume", "cancel", "retry", "replay"])
def test_only_who_may_change_flows_acts(action: str, reader: Client) -> None:
    flow = flows.diamond()
    assert f"/{flow.pk}/{action}/" not in page(reader, flow)
    assert reader.post(f"{FLOWS}{flow.pk}/{action}/").status_code == 403
    only = operators.client("only", "tailrace_jobs.change_flow_state")
    assert only.post(f"{FLOWS}{flow.pk}/{action}/").status_code == 403
    assert "waiting" in states(flow).values()
    assert entries() == []


def test_buttons_are_those_that_the_state_allows(keeper: Client) -> None:
    flow = flows.chain(1)
    expected = {"running": {"pause", "cancel", "replay"}, "failed": {"retry", "replay"},
                "completed": {"replay"}}  # fmt: skip
    for state, buttons in expected.items():
        Job.objects.filter(flow_id=flow.pk).update(state=state)
        shown = re.findall(rf'"{FLOWS}{flow.pk}/(\w+)/"', page(keeper, flow))
        assert set(shown) - {"change", "history"} == buttons, state


# --- the replay -----------------------------------------------------------------------------------


def plan(client: Client, flow: Flow) -> str:
    answer = client.get(f"{FLOWS}{flow.pk}/replay/")
    assert answer.status_code == 200
    return answer.content.decode()


def test_a_replay_shows_its_plan_first_and_makes_a_flow(keeper: Client) -> None:
    flow = flows.diamond()
    Job.objects.create(handler="test.work", flow_id=flow.pk, flow_name="more@1", state="completed")
    text = plan(keeper, flow)
    assert "A new flow with 6 jobs is created" in text
    assert "1 job that other jobs added while they ran are left out" in text
    assert "view_job_payload to see" in text
    assert Flow.objects.count() == 1
    newest = re.findall(r'name="newest" value="(\d+)"', text)[0]
    assert "created by a replay of" in act(keeper, flow, "replay", newest=newest)
    copy = Flow.objects.get(copy_of=flow.pk)
    assert states(copy).keys() == states(flow).keys() - {"more@1"}
    assert entries() == [f"replayed as flow {copy.pk}"]
    assert "Nothing was done" in act(keeper, flow, "replay", newest=newest)  # a second click
    assert Flow.objects.count() == 2
    assert f">flow {flow.pk}</a>" in page(keeper, copy)


def test_a_plan_shows_payloads_and_what_differs_to_who_may_see_them(keeper: Client) -> None:
    flow = flows.chain(2)
    Job.objects.filter(flow_name="work").update(payload={"note": "treasure", "old": 1})
    Job.objects.filter(flow_name="work-2").update(payload={"note": "map"})
    sees = operators.client("sees", *CHANGE, "tailrace_jobs.view_job_payload")
    text, masked = plan(sees, flow), plan(keeper, flow)
    assert "treasure" in text
    assert "treasure" not in masked
    assert "map" not in masked.partition("planned")[2]


def test_a_flow_of_a_handler_that_is_gone_is_not_replayed(keeper: Client) -> None:
    flow = flows.chain(2)
    Job.objects.filter(flow_name="work-2").update(handler="test.gone")
    text = plan(keeper, flow)
    assert "1 job cannot be created" in text
    assert "Create this flow" not in text
    assert "a job cannot be created" in act(keeper, flow, "replay")
    assert Flow.objects.count() == 1
