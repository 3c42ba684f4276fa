"""Jobs: the columns of each row match its state, and failed jobs are in failure groups."""

from collections.abc import Sequence

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.jobs.engine.failures.fill_in import group
from tailrace.jobs.engine.maintenance.sweeping import missing_handlers
from tailrace.jobs.engine.maintenance.sweeping.row_invariant import OLD, RowInvariant
from tailrace.jobs.engine.maintenance.ticking import rescue
from tailrace.jobs.handler import NO_LANE
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.runtime.invariant import Invariant
from tailrace.jobs.runtime.states import FINISHED, LIVE, State


def _in(states: Sequence[State]) -> str:
    return "r.state IN ({})".format(", ".join(f"'{state.value}'" for state in states))


class StateIsKnown(RowInvariant):
    """A job is in one of the seven states."""

    name = "jobs.unknown_state"
    condition = f"NOT {_in(list(State))}"
    advice = "set its state to cancelled or failed by hand, then replay it"


class RunningHasLease(RowInvariant):
    """A running job has a lease."""

    name = "jobs.running_without_lease"
    condition = "r.state = 'running' AND r.lease_until IS NULL"
    change = f"lease_until = {clock.NOW} - interval '1 second'"
    advice = "the lease is ended and the job is rescued: it runs again or fails"

    def repair(self, violations: Sequence[int]) -> int:
        super().repair(violations)
        return rescue.rescue(ids=violations)


class LeaseHasNotEnded(RowInvariant):
    """No running job has a lease that ended long ago."""

    name = "jobs.lease_ended"
    every = 15
    condition = (
        f"r.state = 'running' AND r.lease_until < {OLD}"
        " AND (split_part(r.handler, '@', 1) = ANY(%(known)s)"
        f" OR r.lease_until < {OLD} - interval '1 hour')"
    )
    advice = (
        "the job is rescued: it runs again or fails; find out why the tick did not rescue the job"
    )

    def repair(self, violations: Sequence[int]) -> int:
        return rescue.rescue(ids=violations)


class RunningIsClaimed(RowInvariant):
    """A running job has a claim number, an attempt, a worker and a start time."""

    name = "jobs.running_unclaimed"
    condition = (
        "r.state = 'running' AND (r.claim_no = 0 OR r.attempt = 0 OR r.worker = ''"
        " OR r.started_at IS NULL)"
    )
    advice = "wait: the job finishes, or its lease ends and the tick rescues the job"


class FinishedHasTime(RowInvariant):
    """A finished job has the time at which it finished."""

    name = "jobs.finished_without_time"
    condition = f"{_in(FINISHED)} AND r.finished_at IS NULL"
    change = f"finished_at = {clock.NOW}"
    advice = "the finish time is set to now, so that retention counts from now"


class UnfinishedHasNoTime(RowInvariant):
    """An unfinished job has no finish time."""

    name = "jobs.unfinished_with_time"
    condition = f"{_in(LIVE)} AND r.finished_at IS NOT NULL"
    change = "finished_at = NULL"
    advice = "the finish time is removed"


class OnlyRunningHasLease(RowInvariant):
    """Only a running job has a lease."""

    name = "jobs.lease_without_run"
    condition = "r.state <> 'running' AND r.lease_until IS NOT NULL"
    change = "lease_until = NULL"
    advice = "the lease is removed"


class CancelRequestIsDone(RowInvariant):
    """An unstarted job with a cancel request is cancelled."""

    name = "jobs.cancel_forgotten"
    condition = "r.state IN ('waiting', 'pending') AND r.cancel_requested"
    advice = "the job is cancelled"

    def repair(self, violations: Sequence[int]) -> int:
        return len(cancel(self.lock(violations), by="manage.py fsck").changed)


class PendingHasHandler(Invariant):
    """The handler of a pending job was not removed."""

    name = "jobs.unknown_handler"
    advice = "the job fails with that reason: deploy a handler of that name and replay the job"
    found_by = missing_handlers.find

    def repair(self, violations: Sequence[int]) -> int:
        return missing_handlers.fail(list(violations))


class WaitingHasHandler(RowInvariant):
    """The handler of a waiting job was not removed."""

    name = "jobs.waiting_unknown_handler"
    condition = f"""r.state = 'waiting' AND split_part(r.handler, '@', 1) <> ALL(%(known)s)
      AND (SELECT q.retired_at FROM tailrace_jobs_queue q WHERE q.name = r.handler) < {OLD}"""
    advice = "deploy a handler of that name, or `manage.py jobs cancel ID`"


class HandlerWasMigrated(RowInvariant):
    """`migrate` has been run with the code that has the handler of a job."""

    name = "jobs.handler_not_migrated"
    condition = f"""r.state IN ('waiting', 'pending') AND r.created_at < {OLD}
      AND split_part(r.handler, '@', 1) <> ALL(%(known)s)
      AND NOT EXISTS (SELECT 1 FROM tailrace_jobs_queue q WHERE q.name = r.handler)"""
    advice = (
        "run `manage.py migrate` with the code that has the handler, or `manage.py jobs cancel ID`"
    )


class PendingHasLane(RowInvariant):
    """A pending job has a lane if its handler claims jobs by lane, so that claims find the job."""

    name = "jobs.no_lane"
    condition = (
        f"r.state = 'pending' AND r.lane = '' AND r.handler = ANY(%(in_lanes)s)"
        f" AND r.due_at < {OLD}"
    )
    change = f"lane = '{NO_LANE}'"
    advice = f"the job gets the lane {NO_LANE!r}, like other jobs without a lane"


class EventExists(RowInvariant):
    """The event of a job exists; both are written and pruned together."""

    name = "jobs.event_missing"
    condition = (
        "r.event_id IS NOT NULL"
        " AND (SELECT 1 FROM tailrace_events_event e WHERE e.id = r.event_id) IS NULL"
    )
    advice = "restore the event, and replay the job: without its event it fails at its next claim"


_UNGROUPED = f"""
SELECT id FROM tailrace_jobs_job
WHERE state = 'failed' AND failure_group_id IS NULL AND finished_at < {OLD}
ORDER BY failure_group_id, id LIMIT %(limit)s
"""


class FailedHasGroup(Invariant):
    """A failed job belongs to a failure group."""

    name = "jobs.failed_without_group"
    advice = "the job is added to the group of its last error"
    repaired_by = group

    def find(self) -> list[int]:
        return [id for (id,) in query(_UNGROUPED, limit=self.limit)]
