"""The progress of an import as pages show it: numbers, speed, time left and possible actions."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from tailrace.domains.timeline.imports.decisions import may_cancel, may_undo
from tailrace.domains.timeline.imports.files.parsing.tally import counts_text
from tailrace.domains.timeline.models import Import
from tailrace.domains.timeline.models.location_import import State

STYLES = {
    State.NEEDS_DECISION: "failed",
    State.FAILED: "failed",
    State.COMPLETED: "completed",
    State.CANCELLED: "",
    State.UNDONE: "",
}
"""Suffixes of CSS classes for states; others have the style of a running job."""
RUNNING = [state for state in State if state not in STYLES]
"""States that end without a user's action. Pages reload every second during them."""


@dataclass(frozen=True, slots=True)
class Progress:
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
    if row.state == State.PARSING and row.parsing_since is not None:
        left = _seconds_left(row.bytes_read, row.size, row.parsing_since, now)
        return Progress(row.bytes_read, row.size, points_per_second(row, now), left)
    if row.state == State.GRACE and row.promote_at is not None:
        seconds = max(0, round((row.promote_at - now).total_seconds()))
        return Progress(0, 0, grace_left=f"{seconds // 60}:{seconds % 60:02d}")
    if row.state == State.PROMOTING:
        done = row.inserted + row.duplicates
        left = _seconds_left(done, row.staged, row.promotion_began_at, now)
        return Progress(done, row.staged, None, left)
    if row.state == State.UNDOING:
        return Progress(row.removed, row.inserted)
    return Progress(0, 0)


def points_per_second(row: Import, now: datetime) -> int | None:
    """Return the speed of the import's parsing or promotion, also of a finished promotion; None if
    neither has begun."""
    if row.state == State.PARSING and row.parsing_since is not None:
        return round(row.read / _seconds(row.parsing_since, now))
    end = now if row.state == State.PROMOTING else row.promoted_at
    if row.promotion_began_at is None or end is None:
        return None
    return round((row.inserted + row.duplicates) / _seconds(row.promotion_began_at, end))


def _seconds_left(done: int, total: int, since: datetime | None, now: datetime) -> int | None:
    if not done or since is None:
        return None
    return round(_seconds(since, now) * (total - done) / done)


def _seconds(since: datetime, until: datetime) -> float:
    return max((until - since).total_seconds(), 0.001)


def actions_of(row: Import) -> list[str]:
    """Return the owner's possible actions now: some of promote, cancel, undo."""
    if may_cancel(row):
        may_promote = row.state in (State.GRACE, State.NEEDS_DECISION)
        return ["promote", "cancel"] if may_promote else ["cancel"]
    return ["undo"] if may_undo(row) else []


def rejection_reasons(row: Import) -> str:
    """Return the reasons of rejected points, as ` (no time: 300, unparsable value: 12)`, or ""."""
    reasons = Counter(row.tally.get("rejected", {}))
    if len(reasons) > 1:
        return f" ({counts_text(reasons)})"
    return "".join(f" ({reason})" for reason in reasons)
