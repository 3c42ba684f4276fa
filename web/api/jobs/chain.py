"""The chain of an event: its causes and effects, with their jobs."""

from collections.abc import Iterator

from django.http import HttpRequest
from ninja import Router

from tailrace.events.models import Event
from tailrace.events.privacy.visibility import may_read
from tailrace.events.publish import Recorded
from tailrace.jobs.platform.inspection.details.chain import Node, chain_of
from tailrace.jobs.platform.inspection.visibility import VIEW_JOB
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.jobs.schemas import ChainedEvent, ChainOut
from tailrace.web.api.jobs.showing import shown
from tailrace.web.api.problems import find_row, not_found

router = Router()
READ = Needs("events:read", "tailrace_events.view_event", VIEW_JOB, cost=5)
JOBS = "jobs:read"


@router.get("/{int:id}/chain", auth=READ, response=ChainOut, summary="Get the chain of an event")
def get_chain(request: HttpRequest, id: int) -> ChainOut:
    """The causes and effects of the event, with the jobs of each event.

    A small chain is complete. Of a large chain, only the causes and effects of this event are
    returned. Events that you may not read are left out, with their jobs.
    """
    api_caller = caller(request)
    event = find_row(Event.objects.all(), id, "event")
    if not may_read(api_caller.user, [Recorded.from_model(event)]):
        raise not_found("event")
    nodes = list(_walk(chain_of(id, api_caller.user).roots))
    jobs = None
    if api_caller.token is None or JOBS in api_caller.token.scopes:
        all_jobs = [job for node, _, _ in nodes for job in node.jobs]
        jobs = {job.id: job for job in shown(api_caller.user, all_jobs)}
    return ChainOut(
        events=[
            ChainedEvent(
                id=node.event.pk,
                type=node.event.type,
                subject=node.event.subject,
                occurred_at=node.event.occurred_at,
                parent=parent,
                level=level,
                state=node.state,
                jobs=None if jobs is None else [jobs[job.pk] for job in node.jobs],
                has_more_jobs=node.has_more_jobs,
                has_more_effects=node.has_more_effects,
            )
            for node, parent, level in nodes
        ]
    )


def _walk(
    nodes: list[Node], parent: int | None = None, level: int = 0
) -> Iterator[tuple[Node, int | None, int]]:
    """Yield each event, before its effects, with the id of its parent event and its level."""
    for node in nodes:
        yield node, parent, level
        yield from _walk(node.effects, node.event.pk, level + 1)
