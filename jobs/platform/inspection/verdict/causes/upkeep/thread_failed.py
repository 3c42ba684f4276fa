from tailrace.jobs.platform.inspection.display.formatting import count, when
from tailrace.jobs.platform.inspection.verdict.cause import Cause, Check, Facts, Incident

MAX_NAMED = 3


class ThreadFailed(Check):
    """Threads of workers and beats that failed by an error which their code did not expect: upkeep,
    the engine of async handlers, the renewal of leases, wake-ups."""

    code = "thread_failed"
    rank = 25

    def causes(self, facts: Facts) -> list[Cause]:
        failures = [each for each in facts.incidents if each.kind == "thread"]
        return [_cause(failure) for failure in failures[:MAX_NAMED]]


def _cause(failure: Incident) -> Cause:
    facts, failed = failure.facts, "failed"
    if failure.times > 1:
        failed = f"failed {count(failure.times, 'time')} since {when(failure.since)}, last"
    return Cause(
        f"The thread {facts['thread']} of the process {failure.process} {failed} at"
        f" {when(failure.at)} with {facts['error_class']}. It was started again, and goes on only"
        " if the error does not come back.",
        since=failure.since,
        advice="Look for thread.failed in the logs of this process. If a setting or a permission is"
        " missing, add it and restart the worker.",
        quoted=facts["error"],
    )
