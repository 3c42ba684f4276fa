"""List flows, and get a flow with its graph."""

from collections.abc import Sequence

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Query, Router

from tailrace.db.pagination import decode, encode
from tailrace.db.query import query as rows_of
from tailrace.jobs.flows.state import statuses
from tailrace.jobs.models import Flow
from tailrace.jobs.platform.inspection.flows.critical_path import critical_path
from tailrace.jobs.platform.inspection.flows.graph import read_graph
from tailrace.jobs.platform.inspection.flows.listing import in_state
from tailrace.jobs.platform.inspection.flows.masking import mask_names
from tailrace.jobs.platform.inspection.visibility import VIEW_FLOW, VIEW_JOB
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.jobs.flows.schemas import EdgeOut, FlowDetails, FlowFilter, FlowOut, StepOut
from tailrace.web.api.pagination import Page, PageParams
from tailrace.web.api.problems import find_row

router = Router()
VIEW = (VIEW_FLOW, VIEW_JOB)
READ = Needs("jobs:read", *VIEW, cost=5)
WINDOW = 10_000
"""Maximum number of flows that a page reads for a part of a name."""


@router.get("", auth=READ, response=Page[FlowOut], summary="List flows")
def list_flows(request: HttpRequest, query: Query[FlowFilter]) -> Page[FlowOut]:
    """Newest first. The filter `state` finds only flows among the newest 5,000 flows with live or
    failed jobs."""
    below = None if query.cursor is None else decode(query.cursor, int)[0]
    rows = Flow.objects.order_by("-pk")
    rows = rows if below is None else rows.filter(pk__lt=below)
    matching, end = _filtered(rows, query)
    flows = list(matching[: query.limit + 1])
    if len(flows) > query.limit:
        flows = flows[: query.limit]
        end = flows[-1].pk
    return Page(items=shown(flows), next=None if end is None else encode(end))


def _filtered(rows: QuerySet[Flow], query: FlowFilter) -> tuple[QuerySet[Flow], int | None]:
    """Return the matching flows, and the id at which the search for a name ended."""
    matching, end = rows, None
    if query.state:
        matching = in_state(matching, query.state)
    if query.name:
        end = rows.values_list("pk", flat=True)[WINDOW - 1 : WINDOW].first()
        matching = matching.filter(name__icontains=query.name)
        matching = matching if end is None else matching.filter(pk__gte=end)
    return matching, end


def shown(flows: Sequence[Flow]) -> list[FlowOut]:
    """Return the flows with their states."""
    by_id = statuses(flows)
    return [
        FlowOut.of(
            flow,
            state=by_id[flow.pk].state,
            jobs=by_id[flow.pk].jobs,
            ended=by_id[flow.pk].ended,
            counts=by_id[flow.pk].counts,
            ended_at=by_id[flow.pk].ended_at,
        )
        for flow in flows
    ]


@router.get("/{int:id}", auth=READ, response=FlowDetails, summary="Get a flow")
def get_flow(request: HttpRequest, id: int) -> FlowDetails:
    """The state of a flow, the number of its jobs by state, and its critical path. Names of jobs
    that you may not see are masked."""
    flow = find_row(Flow.objects.all(), id, "flow")
    graph = read_graph(flow.pk)
    steps, _has_earlier = critical_path(graph)
    mask_names(caller(request).user, [step.job for step in steps])
    path = [
        StepOut.of(step, job_id=step.job.id, name=step.job.name, state=step.job.state)
        for step in steps
    ]
    [summary] = shown([flow])
    return FlowDetails(**summary.model_dump(), critical_path=path, is_whole=graph.is_whole)


# Each of these jobs has an edge, except perhaps the first, whose edges may be on the page before. A
# job of a flow with one parent that must succeed has no row.
_EDGES = """
SELECT j.id, e.parent_id, e.need
FROM (
  SELECT id, after_id FROM tailrace_jobs_job
  WHERE flow_id = %(flow)s AND id >= %(job)s AND after_id IS NOT NULL
  ORDER BY id LIMIT %(limit)s + 1
) j, LATERAL (
  (SELECT parent_id, need FROM tailrace_jobs_dependency d
   WHERE d.job_id = j.id AND (j.id > %(job)s OR d.parent_id > %(parent)s)
   ORDER BY parent_id LIMIT %(limit)s)
  UNION ALL
  SELECT j.after_id, 'success' WHERE (j.id > %(job)s OR j.after_id > %(parent)s)
    AND NOT EXISTS (SELECT 1 FROM tailrace_jobs_dependency d WHERE d.job_id = j.id)
) e ORDER BY 1, 2 LIMIT %(limit)s
"""


@router.get(
    "/{int:id}/edges", auth=READ, response=Page[EdgeOut], summary="List the edges of a flow"
)
def list_edges(request: HttpRequest, id: int, query: Query[PageParams]) -> Page[EdgeOut]:
    """The dependencies between the jobs of the flow: the ids of a job and of a parent that it waits
    for."""
    find_row(Flow.objects.only("pk"), id, "flow")
    job, parent = (0, 0) if query.cursor is None else decode(query.cursor, int, int)
    rows = rows_of(_EDGES, flow=id, job=job, parent=parent, limit=query.limit + 1)
    edges = [EdgeOut(job_id=job, parent_id=parent, need=need) for job, parent, need in rows]
    page = edges[: query.limit]
    more = len(edges) > len(page)
    return Page(items=page, next=encode(page[-1].job_id, page[-1].parent_id) if more else None)
