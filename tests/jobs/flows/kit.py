"""What the tests of flows share."""

from tailrace.jobs.flows import NewFlow
from tailrace.jobs.models import Flow, Job

FAILS = {"do": "permanent", "note": "no"}


def states(flow: NewFlow) -> dict[str, str]:
    """Return the state of each job by its name."""
    jobs = Job.objects.filter(flow_id=flow.id).order_by("pk")
    return {str(job.flow_name): job.state for job in jobs}


def stored(flow: NewFlow) -> Flow:
    return Flow.objects.get(pk=flow.id)
