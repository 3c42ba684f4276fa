from tailrace.jobs.engine.maintenance.ticking.losses import NAMED_FROM
from tailrace.jobs.platform.inspection.display.formatting import count, when
from tailrace.jobs.platform.inspection.verdict.cause import (
    Cause,
    Check,
    Facts,
    Incident,
    admin_link,
)

MAX_NAMED = 3


class WorkerKilled(Check):
    """Handlers whose calls end their worker's process again and again."""

    code = "worker_killed"
    rank = 18

    def causes(self, facts: Facts) -> list[Cause]:
        losses = [
            each for each in facts.incidents if each.kind == "loss" and each.times >= NAMED_FROM
        ]
        return [_cause(loss) for loss in losses[:MAX_NAMED]]


def _cause(loss: Incident) -> Cause:
    job, lost = loss.facts["job"], loss.facts["lost"]
    return Cause(
        f"{loss.name} loses its workers: {count(loss.times, 'time')} since {when(loss.since)}. The"
        f" last was job {job} at {when(loss.at)}: {lost}.",
        subject=loss.name,
        since=loss.since,
        advice="Signal 9 usually means too little memory: look at the memory of the workers and at"
        " the kernel's log. Pause the queue if its jobs delay others.",
        link=admin_link(f"Job {job}", "job_change", job),
    )
