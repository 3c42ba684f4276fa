from tailrace.jobs.platform.inspection.display.formatting import when
from tailrace.jobs.platform.inspection.storage import Snapshot, oldest_snapshot
from tailrace.jobs.platform.inspection.verdict.cause import Cause, Check, Facts, Link

HELD_SECONDS = 300
LEAST_TRANSACTIONS = 10_000
"""Fewer transactions leave too few dead rows to matter."""


class SnapshotHeld(Check):
    """A long transaction keeps dead rows, which slow down every claim."""

    code = "snapshot_held"
    rank = 85
    permission = "tailrace_jobs.view_job"

    def causes(self, facts: Facts) -> list[Cause]:
        snapshot = oldest_snapshot()
        return [_cause(snapshot)] if snapshot is not None and _is_harmful(snapshot) else []


def _is_harmful(snapshot: Snapshot) -> bool:
    held = snapshot.seconds is None or snapshot.seconds >= HELD_SECONDS
    return held and snapshot.transactions >= LEAST_TRANSACTIONS


def _cause(snapshot: Snapshot) -> Cause:
    since = f" since {when(snapshot.since)}" if snapshot.since else ""
    advice = f"Commit, roll back or drop the {snapshot.kind} if it is not needed."
    command = ""
    if snapshot.kind == "session":
        advice = "End the session if it is not needed; it may be a backup or a long report."
        command = f'psql -c "SELECT pg_terminate_backend({snapshot.pid})"'
    return Cause(
        f"A {snapshot.kind} has held a snapshot{since}: changes of {snapshot.transactions:,}"
        " transactions since then cannot be vacuumed, so claims become slower and tables grow.",
        since=snapshot.since,
        advice=advice,
        private=f"It is the {snapshot.holder}.",
        command=command,
        link=Link("Sizes of the tables", "tailrace:storage"),
    )
