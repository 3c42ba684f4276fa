"""The states of a job, and the moves between them.

            after done                 claim                     settle
 waiting ───────────────► pending ───────────────► running ───────────────► completed
    │                      ▲   ▲                    │ │ │ └──────────────────► skipped
    │ parent failed        │   │ retry, snooze,     │ │ └────────────────────► cancelled
    │ or cancelled,        │   │ hand back          │ └──────────────────────► failed
    │ or requested         │   └─ lease expired ────┘    (attempts used up, or permanent)
    ▼                      │
 cancelled ◄── cancel ─────┤
                           └── replay ── failed, cancelled, skipped

If a handler raises while the jobs of an event are worked out, one failed job stands for them. It
goes from failed to skipped when a replay finds that the handler wants no job for the event.

Each move has one writer, which is a guarded statement. The paths begin in jobs/:
engine/claiming/take.sql        pending → running
engine/settling/settle.py       running → any
engine/waking/dependents.py     waiting → pending, cancelled or skipped
engine/maintenance/ticking/rescue.py   running → pending or failed, when its worker is lost
engine/maintenance/sweeping/missing_handlers.py   pending → failed, when it has no handler
operations/cancel.py            waiting or pending → cancelled, also when the parent job is gone
flows/hold.py                   pending → waiting, when the flow is paused
operations/replay.py            failed, cancelled or skipped → pending or waiting
operations/undo.py              pending or waiting → failed or cancelled, as before a replay
operations/work_out_again.py    failed → pending or skipped
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
OVER = (State.COMPLETED, State.SKIPPED, State.CANCELLED)
"""States of jobs that move to the history. Failed jobs do not: they wait for an operator."""
FINISHED = (*OVER, State.FAILED)
REPLAYABLE = (State.FAILED, State.CANCELLED, State.SKIPPED)

MOVES: dict[State, frozenset[State]] = {
    State.WAITING: frozenset({State.PENDING, State.SKIPPED, State.CANCELLED, State.FAILED}),
    State.PENDING: frozenset({State.RUNNING, State.WAITING, State.CANCELLED, State.FAILED}),
    State.RUNNING: frozenset(
        {State.PENDING, State.COMPLETED, State.SKIPPED, State.CANCELLED, State.FAILED}
    ),
    State.COMPLETED: frozenset(),
    State.SKIPPED: frozenset({State.PENDING, State.WAITING}),
    State.CANCELLED: frozenset({State.PENDING, State.WAITING}),
    State.FAILED: frozenset({State.PENDING, State.WAITING, State.SKIPPED}),
}
