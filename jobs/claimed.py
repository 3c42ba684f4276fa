"""ClaimedJob: what a handler is given: the job, its event, and the words to settle it with."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError

from events.prepare import describe
from events.publish import Recorded
from jobs import lease
from jobs.handler import Handler
from jobs.outcomes import CancelRequested, LeaseLost, Permanent, Retry, Skip, Snooze


@dataclass(slots=True, eq=False)
class ClaimedJob:
    """A job that this worker has the right to try, until it settles or its lease runs out."""

    id: int
    handler: Handler
    routing_key: str
    raw_payload: Any
    lane: str
    attempt: int
    claim_no: int
    worker: str
    event_row: Sequence[Any] | None
    outcome: Any = None
    """What `handle_batch` said of this job alone: an Outcome, or Completed."""
    _payload: BaseModel | None = field(default=None, repr=False)
    _event: Recorded | None = field(default=None, repr=False)

    @property
    def event(self) -> Recorded | None:
        """The event that owes this job; None if it was enqueued or scheduled."""
        if self._event is None and self.event_row is not None:
            self._event = Recorded.from_row(self.event_row)
        return self._event

    @property
    def max_attempts(self) -> int:
        return self.handler.max_attempts

    @property
    def payload(self) -> Any:
        """The validated payload of an enqueued job: an instance of the handler's Payload."""
        if self._payload is None and self.handler.Payload is not None:
            raw = {} if self.raw_payload is None else self.raw_payload
            try:
                self._payload = self.handler.Payload.model_validate(raw)
            except ValidationError as error:
                raise Permanent(f"payload does not validate: {describe(error)}") from None
        return self._payload

    def progress(self, done: int, total: int | None = None, note: str = "") -> None:
        """Record how far the job is; shown to operators while it runs."""
        lease.record_progress(self, done, total, note)

    def check_cancelled(self) -> None:
        """Raise CancelRequested if an operator asked for it, LeaseLost if the job is not ours.

        One small query: call it between steps, not per row.
        """
        owned, cancel = lease.look(self)
        if not owned:
            raise LeaseLost("another worker has claimed the job")
        if cancel:
            raise CancelRequested("cancelled while running")

    # In handle_batch, what is not settled by one of these is completed.

    def complete(self, result: Any = None) -> None:
        self.outcome = Completed(result)

    def retry(self, reason: str = "", *, after: float | None = None) -> None:
        self.outcome = Retry(reason, after=after)

    def snooze(self, reason: str = "", *, seconds: float) -> None:
        self.outcome = Snooze(reason, seconds=seconds)

    def skip(self, reason: str) -> None:
        self.outcome = Skip(reason)

    def fail(self, reason: str) -> None:
        self.outcome = Permanent(reason)


@dataclass(frozen=True, slots=True)
class Completed:
    result: Any = None


def from_row(handler: Handler, worker: str, row: tuple[Any, ...]) -> ClaimedJob:
    """Build a ClaimedJob from a row of the claim's RETURNING."""
    id, _awake, routing_key, payload, lane, attempt, claim_no, *event = row
    return ClaimedJob(
        id=id,
        handler=handler,
        routing_key=routing_key,
        raw_payload=None if payload is None else json.loads(payload),
        lane=lane,
        attempt=attempt,
        claim_no=claim_no,
        worker=worker,
        event_row=None if event[0] is None else event,
    )
