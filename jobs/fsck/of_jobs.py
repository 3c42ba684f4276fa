"""Jobs: what a row may say of itself in each state."""

from collections.abc import Sequence
from typing import Any

from events import clock
from jobs import dead, operate, rescue
from jobs.fsck.kind import OLD, RowKind, Scope, bounded, rows
from jobs.handler import NO_LANE
from jobs.states import FINISHED, LIVE, State


def _in(states: Sequence[State]) -> str:
    return "r.state IN ({})".format(", ".join(f"'{state.value}'" for state in states))


class StatesAreKnown(RowKind):
    """A job's state is one of the seven."""

    name = "jobs.unknown_state"
    condition = f"NOT {_in(list(State))}"
    advice = "no code moves it: set its state by hand to cancelled or failed, then replay it"


class RunningIsLeased(RowKind):
    """A running job has a lease."""

    name = "jobs.running_without_lease"
    condition = "r.state = 'running' AND r.lease_until IS NULL"
    repairs = True
    advice = "its lease is ended, and rescue gives it to another worker or fails it"

    def repair(self, keys: Sequence[Any], scope: Scope) -> None:
        with bounded():
            rows(
                f"""UPDATE jobs_job r SET lease_until = {clock.NOW} - interval '1 second'
                    WHERE r.id = ANY(%(ids)s) AND {self.condition} RETURNING r.id""",
                ids=list(keys),
            )
        _rescue(len(keys))


class LeasesEnd(RowKind):
    """A running job's lease has not ended long ago, without anybody's taking it back."""

    name = "jobs.lease_ended"
    condition = (
        f"r.state = 'running' AND r.lease_until < {OLD} AND (r.handler = ANY(%(known)s)"
        f" OR r.lease_until < {OLD} - interval '1 hour')"
    )
    repairs = True
    advice = "rescue gives it to another worker or fails it; look why the tick does not"

    def repair(self, keys: Sequence[Any], scope: Scope) -> None:
        _rescue(len(keys))


def _rescue(most: int) -> None:
    """Rescue goes by the oldest lease, so it may take others first that are as expired."""
    left = most
    while left > 0:
        with bounded():
            if not rescue.rescue(1000):
                break
        left -= 1000


class RunningIsClaimed(RowKind):
    """A running job was claimed: it has a claim, an attempt, a worker and a start."""

    name = "jobs.running_unclaimed"
    condition = (
        "r.state = 'running' AND (r.claim_no = 0 OR r.attempt = 0 OR r.worker = ''"
        " OR r.started_at IS NULL)"
    )
    advice = "if nobody works on it, its lease ends and the tick takes it back; else let it end"


class FinishedHasATime(RowKind):
    """A finished job has the time when it finished."""

    name = "jobs.finished_without_time"
    condition = f"{_in(FINISHED)} AND r.finished_at IS NULL"
    change = f"finished_at = {clock.NOW}"
    repairs = True
    advice = "it is given the present time, so that retention counts from now"


class UnfinishedHasNone(RowKind):
    """A job that is not finished has no time of finishing."""

    name = "jobs.unfinished_with_time"
    condition = f"{_in(LIVE)} AND r.finished_at IS NOT NULL"
    change = "finished_at = NULL"
    repairs = True
    advice = "the time is taken away"


class LeasesAreOfRunning(RowKind):
    """Only a running job has a lease."""

    name = "jobs.lease_without_run"
    condition = "r.state <> 'running' AND r.lease_until IS NOT NULL"
    change = "lease_until = NULL"
    repairs = True
    advice = "the lease is taken away"


class CancelsAreHeard(RowKind):
    """An unstarted job that was asked to stop is cancelled."""

    name = "jobs.cancel_forgotten"
    condition = "r.state IN ('waiting', 'pending') AND r.cancel_requested"
    repairs = True
    advice = "it is cancelled"

    def repair(self, keys: Sequence[Any], scope: Scope) -> None:
        with bounded():
            operate.cancel(list(keys), by="manage.py fsck")


# As jobs.dead has it: a queue's row stands for a handler of the code that migrated last. The
# sweeper buries what is pending; it has had the time to when queue and job are not young.
_UNKNOWN = f"""r.handler <> ALL(%(known)s) AND coalesce(
  (SELECT coalesce(q.retired_at, 'infinity') FROM jobs_queue q WHERE q.name = r.handler),
  r.created_at) < {OLD}"""


class PendingHasAHandler(RowKind):
    """The handler of a pending job exists."""

    name = "jobs.unknown_handler"
    condition = (
        f"r.state = 'pending' AND (r.due_at < {OLD} OR r.due_at > {clock.NOW}) AND {_UNKNOWN}"
    )
    repairs = True
    advice = "it fails with that reason; deploy a handler of its name and replay it"

    def repair(self, keys: Sequence[Any], scope: Scope) -> None:
        with bounded():
            dead.bury(list(keys))


class WaitingHasAHandler(RowKind):
    """The handler of a waiting job exists."""

    name = "jobs.waiting_unknown_handler"
    condition = f"r.state = 'waiting' AND {_UNKNOWN}"
    advice = "deploy a handler of its name, or `manage.py jobs cancel ID`"


class LanedHasALane(RowKind):
    """A pending job whose handler takes jobs lane by lane has a lane: else no claim finds it."""

    name = "jobs.no_lane"
    condition = (
        f"r.state = 'pending' AND r.lane = '' AND r.handler = ANY(%(in_lanes)s)"
        f" AND r.due_at < {OLD}"
    )
    change = f"lane = '{NO_LANE}'"
    repairs = True
    advice = f"it is given the lane {NO_LANE!r}, as jobs without one are; it was made before"


class EventsExist(RowKind):
    """The event that a job is owed to exists: both are written and pruned together."""

    name = "jobs.event_missing"
    condition = (
        "r.event_id IS NOT NULL AND (SELECT 1 FROM events_event e WHERE e.id = r.event_id) IS NULL"
    )
    advice = "cancel it if it is live; its handler would be given no event. Retention ends the rest"
