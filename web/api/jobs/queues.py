"""The queues, with their states and counts."""

from dataclasses import asdict

from django.http import HttpRequest
from ninja import Router

from tailrace.jobs.platform.inspection.queue_states import queue_states
from tailrace.jobs.platform.inspection.queues import stats
from tailrace.web.api.auth import Needs
from tailrace.web.api.jobs.schemas import QueueOut

router = Router()
READ = Needs("jobs:read", "tailrace_jobs.view_queue", cost=5)
MAX_QUEUES = 1_000
MAX_COUNTED = 10_000


@router.get("", auth=READ, response=list[QueueOut], summary="List the queues")
def list_queues(request: HttpRequest) -> list[QueueOut]:
    """The queues of all handlers, and queues without a handler that still have jobs. Sorted by
    name, at most 1,000. The states are the same as on the overview page."""
    queues = stats.queues(MAX_COUNTED)[:MAX_QUEUES]
    states = queue_states(queues)
    completed = stats.completed_per_minute()
    return [
        QueueOut(
            **asdict(queue),
            state=states[queue.name],
            completed=sum(completed.get(queue.name, ())),
        )
        for queue in queues
    ]
