"""What the handlers do in the machine, and the state that each verdict ends in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tailrace.jobs.engine import registry
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.handler import Cancel, ClaimedJob, Permanent, Retry, Skip, Snooze
from tailrace.jobs.runtime.states import State
from tests.kit import verdicts_on
from tests.properties.machine.recording import Row

RAISED = {
    "retry": lambda: Retry("at once", after=0),
    "raise": lambda: RuntimeError("as scripted"),
    "permanent": lambda: Permanent("never"),
    "snooze": lambda: Snooze("not yet", seconds=40),
    "skip": lambda: Skip("nothing to do"),
    "cancel": lambda: Cancel("no longer needed"),
}
"""What a handler raises, by verdict; with the others it returns, or is not called."""


VERDICTS = ("complete", "result", "check", "hand back", *RAISED)


@dataclass(slots=True)
class ScriptedHandler:
    """What the handlers return and raise."""

    returned: set[tuple[int, int]]
    verdicts: Sequence[str] = VERDICTS[:1]

    def verdict(self, job: ClaimedJob) -> str:
        return self.verdicts[(job.id + job.claim_no) % len(self.verdicts)]

    def handle(self, work: Any) -> Any:
        """What every handler does: with one job, or with a batch."""
        if isinstance(work, ClaimedJob):
            return self._outcome_of(work)
        for job in work:
            verdict = self.verdict(job)
            if len(work) > 1 and verdict in ("retry", "permanent", "snooze", "skip"):
                job.outcome = RAISED[verdict]()
            else:
                self._outcome_of(job)
        return None

    def _outcome_of(self, job: ClaimedJob) -> Any:
        verdict = self.verdict(job)
        if verdict in RAISED:
            raise RAISED[verdict]()
        if verdict == "check":
            job.check_cancelled()
        self.returned.add((job.id, job.claim_no))
        return {"done": job.id} if verdict == "result" else None

    def run(self, jobs: Sequence[ClaimedJob], verdicts: Sequence[str]) -> list[Verdict]:
        """Run these jobs with their handler; return the verdicts of the engine."""
        self.verdicts = verdicts
        back = [job for job in jobs if self.verdict(job) == "hand back"]
        rest = [job for job in jobs if job not in back]
        ended = list(verdicts_on(rest)) if rest else []
        return ended + [Verdict(job, State.PENDING, charged=False) for job in back]


def expected_state(job: Row, verdict: str, taken: bool) -> State:
    """The state in which a claim that is still live is settled."""
    ends = {"skip": State.SKIPPED, "cancel": State.CANCELLED, "permanent": State.FAILED}
    ends |= {"complete": State.COMPLETED, "result": State.COMPLETED}
    if verdict in ends:
        return ends[verdict]
    if verdict == "check":
        return State.CANCELLED if job.cancel_requested else State.COMPLETED
    most = registry.get(job.handler).max_attempts
    if verdict in ("retry", "raise") and job.attempt >= most:
        return State.FAILED
    otherwise = State.SKIPPED if taken else State.PENDING
    return State.CANCELLED if job.cancel_requested else otherwise
