from django.contrib.auth.models import User
from django.db import ProgrammingError, transaction

from tailrace.db.engine_database import home
from tailrace.db.limits import reason
from tailrace.jobs.models import Pulse
from tailrace.jobs.platform.inspection.display.formatting import when
from tailrace.jobs.platform.inspection.storage import Snapshot, end_session, oldest_snapshot
from tailrace.jobs.platform.inspection.verdict.cause import Button, Cause, Check, Facts, Link
from tailrace.jobs.runtime import audit

HELD_SECONDS = 300
LEAST_TRANSACTIONS = 10_000
"""Fewer transactions leave too few dead rows to matter."""


class SnapshotHeld(Check):
    """A long transaction keeps dead rows, which slow down every claim."""

    code = "snapshot_held"
    rank = 35
    permission = "tailrace_jobs.view_job"
    button = Button(
        "End this session",
        "tailrace_jobs.end_session",
        "The transaction of the session is rolled back, and its program loses the connection. It"
        " may be a backup or a long report.",
    )

    def causes(self, facts: Facts) -> list[Cause]:
        snapshot = oldest_snapshot()
        return [_cause(snapshot)] if snapshot is not None and _is_harmful(snapshot) else []

    def mend(self, user: User, subject: str) -> str:
        snapshot = oldest_snapshot()
        if snapshot is None or snapshot.session != subject:
            return "This session has ended, or no longer holds the oldest snapshot."
        try:
            with transaction.atomic(using=home()):
                ended = end_session(snapshot)
                audit.record(user, Pulse, "ended", [(snapshot.pid, f"the {snapshot.holder}")])
        except ProgrammingError as error:
            return f"The session was not ended: {reason(error)}. Run the command as a superuser."
        return f"The {snapshot.holder} {'was asked to end' if ended else 'has ended already'}."


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
        subject=snapshot.session,
        quoted=f"Its statement: {snapshot.query}" if snapshot.query else "",
        words=f"A {snapshot.kind} has held a snapshot{since}: changes of {snapshot.transactions:,}"
        " transactions since then cannot be vacuumed, so claims become slower and tables grow.",
        since=snapshot.since,
        advice=advice,
        private=f"It is the {snapshot.holder}.",
        command=command,
        link=Link("Sizes of the tables", "tailrace:storage"),
    )
