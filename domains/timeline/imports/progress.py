"""The progress of an import as pages show it: numbers, speed, time left and possible actions."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from tailrace.domains.timeline.imports.decisions import may_cancel, may_undo
from tailrace.domains.timeline.models import Import
from tailrace.domains.timeline.models.location_import import State

SHOWN_STATES = {
    State.NEEDS_DECISION: "failed",
    State.FAILED: "failed",
    State.COMPLETED: "completed",
}
RUNNING = (
    State.RECEIVING,
    State.QUEUED,
    State.PARSING,
    State.GRACE,
    State.PROMOTING,
    State.ENRICHING,
    State.UNDOING,
)
"""States that end without a user's action. Pages reload every second during them."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of the current step."""

    done: int
    """Finished part of `total`."""
    total: int
    """0 if no progress bar is shown."""
    per_second: int | None = None
    """Points per second."""
    seconds_left: int | None = None
    grace_left: str = ""
    """Rest of the grace, such as `4:59`."""


def progress_of(row: Import, now: datetime) -> Progress:
    """Return the progress of the import's current step."""
    if row.state == State.PARSING and row.parsing_since is not None:
        seconds = max((now - row.parsing_since).total_seconds(), 0.001)
        left = None
        if row.bytes_read:
            left = round(seconds * (row.size - row.bytes_read) / row.bytes_read)
        return Progress(row.bytes_read, row.size, round(row.read / seconds), left)
    if row.state == State.GRACE and row.promote_at is not None:
        return Progress(0, 0, grace_left=minutes(row.promote_at - now))
    if row.state == State.PROMOTING:
        done = row.inserted + row.duplicates
        left = None
        if done and row.promotion_began_at is not None:
            seconds = max((now - row.promotion_began_at).total_seconds(), 0.001)
            left = round(seconds * (row.staged - done) / done)
        return Progress(done, row.staged, None, left)
    if row.state == State.UNDOING:
        return Progress(row.removed, row.inserted)
    return Progress(0, 0)


def minutes(left: timedelta) -> str:
    """Return a duration as `4:59`; a negative one as `0:00`."""
    seconds = max(0, round(left.total_seconds()))
    return f"{seconds // 60}:{seconds % 60:02d}"


def actions_of(row: Import) -> list[str]:
    """Return the owner's possible actions now: some of promote, cancel, undo."""
    if may_cancel(row):
        may_promote = row.state in (State.GRACE, State.NEEDS_DECISION)
        return ["promote", "cancel"] if may_promote else ["cancel"]
    return ["undo"] if may_undo(row) else []


def rejection_reasons(row: Import) -> str:
    """Return the reasons of rejected points, as ` (no time: 300, unparsable value: 12)`, or ""."""
    reasons = sorted(row.tally.get("rejected", {}).items(), key=lambda item: -item[1])
    if len(reasons) == 1:
        return f" ({reasons[0][0]})"
    return f" ({', '.join(f'{reason}: {count:,}' for reason, count in reasons)})" if reasons else ""


def style_of(row: Import) -> str:
    """Return the CSS class suffix for the colour of the import's state, or ""."""
    if row.state in (State.CANCELLED, State.UNDONE):
        return ""
    return SHOWN_STATES.get(State(row.state), "running")
