"""The states of a job, and the moves between them.

            after done                 claim                     settle
 waiting ───────────────► pending ───────────────► running ───────────────► completed
    │                      ▲   ▲                    │ │ │ └──────────────────► skipped
    │ parent failed        │   │ retry, snooze,     │ │ └────────────────────► cancelled
    │ or cancelled,        │   │ hand back          │ └──────────────────────► failed
    │ or asked for         │   └─ lease expired ────┘    (attempts used up, or permanent)
    ▼                      │
 cancelled ◄── cancel ─────┤
                           └── replay ── failed, cancelled, skipped

One writer per move, each a guarded UPDATE: claim.py (pending → running), settle.py (running →
anything), rescue.py (running → pending or failed, lease expired), continuation.py (waiting →
pending or cancelled), operate.py (cancel, replay), dead.py (pending → failed, unknown handler).
"""

from django.db.models import TextChoices


class State(TextChoices):
    WAITING = "waiting"
    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    FAILED = "failed"


LIVE = (State.WAITING, State.PENDING, State.RUNNING)
UNSTARTED = (State.WAITING, State.PENDING)
DONE = (State.COMPLETED, State.SKIPPED)
FINISHED = (State.COMPLETED, State.SKIPPED, State.CANCELLED, State.FAILED)
REPLAYABLE = (State.FAILED, State.CANCELLED, State.SKIPPED)

MOVES: dict[State, frozenset[State]] = {
    State.WAITING: frozenset({State.PENDING, State.CANCELLED}),
    State.PENDING: frozenset({State.RUNNING, State.CANCELLED, State.FAILED}),
    State.RUNNING: frozenset(
        {State.PENDING, State.COMPLETED, State.SKIPPED, State.CANCELLED, State.FAILED}
    ),
    State.COMPLETED: frozenset(),
    State.SKIPPED: frozenset({State.PENDING, State.WAITING}),
    State.CANCELLED: frozenset({State.PENDING, State.WAITING}),
    State.FAILED: frozenset({State.PENDING, State.WAITING}),
}
