"""Run a flow in the process of the test, with the engine that workers use."""

from collections import Counter

from tailrace.jobs.flows import NewFlow
from tailrace.jobs.flows.state import FlowStatus, status
from tailrace.jobs.models import Flow, Job
from tailrace.jobs.runtime.states import State
from tailrace.jobs.testing.perform import claimed, errors_raised, one_connection, run_and_settle

MOST_RUNS = 1000
"""The number of times that a job of a flow may run."""


@one_connection()
def run_flow(flow: NewFlow | Flow | int, *, may_fail: bool = False) -> FlowStatus:
    """Run the jobs of a flow, and no others, until all of them have ended; return its status.

    `flow` is the flow or its id. A new flow is enqueued first. Jobs that are due later, also
    retries, run at once, even if their queue is paused. If the flow is paused, the jobs that are
    held back do not run. Raises AssertionError if a job is snoozed endlessly, and with the
    tracebacks of calls that raised an error, unless `may_fail`.
    """
    id = _id_of(flow)
    if (stored := Flow.objects.filter(pk=id).first()) is None:
        raise AssertionError(f"there is no flow {id}: was the transaction rolled back?")
    runs: Counter[int] = Counter()
    with errors_raised(may_fail):
        while (job := _next_job(id)) is not None:
            runs[job] += 1
            if runs[job] > MOST_RUNS:
                raise AssertionError(
                    f"job {job} of flow {id} has run {MOST_RUNS} times: is it snoozed endlessly?"
                )
            run_and_settle([claimed(job)])
    return status(stored)


def _id_of(flow: NewFlow | Flow | int) -> int:
    if isinstance(flow, NewFlow):
        return flow.enqueue() if flow.id is None else flow.id
    return flow.pk if isinstance(flow, Flow) else flow


def _next_job(flow: int) -> int | None:
    jobs = Job.objects.filter(flow_id=flow, state=State.PENDING).order_by("due_at", "pk")
    return jobs.values_list("pk", flat=True).first()
