"""The writes that the machine checks: a trigger records each change of a job's row, from whatever
connection it comes, so that no move is missed that a drain or a race makes within one step.
"""

import json
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from django.db import connection

from tailrace.jobs.runtime.states import State

ADD_TRIGGER = """
DROP TABLE IF EXISTS machine_write;
CREATE TABLE machine_write (id bigserial PRIMARY KEY, was jsonb, became jsonb,
  transaction bigint DEFAULT txid_current());
CREATE OR REPLACE FUNCTION machine_record_write() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO machine_write (was, became) VALUES (to_jsonb(OLD), to_jsonb(NEW));
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER machine_record_write AFTER INSERT OR UPDATE OR DELETE ON tailrace_jobs_job
  FOR EACH ROW EXECUTE FUNCTION machine_record_write();
"""


DROP_TRIGGER = """
DROP FUNCTION IF EXISTS machine_record_write CASCADE;
DROP TABLE IF EXISTS machine_write;
"""


EMPTY = """
TRUNCATE machine_write, tailrace_jobs_job, tailrace_jobs_attempt, tailrace_jobs_sweeprun,
  tailrace_jobs_slot, tailrace_jobs_schedule, tailrace_jobs_throughput, tailrace_jobs_pulse,
  tailrace_events_event, tailrace_jobs_flow, tailrace_jobs_dependency RESTART IDENTITY CASCADE;
UPDATE tailrace_jobs_queue SET paused_at = NULL, max_running = NULL;
UPDATE tailrace_jobs_queueactivity
  SET awake = false, awake_at = NULL, drained_at = NULL, resends = 0
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A job as a write left it."""

    id: int
    handler: str
    state: State
    claim_no: int
    attempt: int
    worker: str
    lane: str
    due_at: datetime
    lease_until: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    unique_key: str | None
    after_id: int | None
    flow_id: int | None
    cancel_requested: bool
    isolate: bool
    begun: bool
    error: str

    @classmethod
    def read(cls, text: str | None) -> "Row | None":
        if text is None:
            return None
        values = json.loads(text)
        values["state"] = State(values["state"])
        for name in ("due_at", "lease_until", "started_at", "finished_at"):
            values[name] = values[name] and datetime.fromisoformat(values[name])
        return cls(**{field.name: values[field.name] for field in fields(cls)})

    def __str__(self) -> str:
        return f"{self.handler} {self.id} {self.state} claim {self.claim_no} try {self.attempt}"


Write = tuple[Row | None, Row | None]
"""What a row was, and what it became."""


def writes_after(last: int) -> tuple[list[Write], int]:
    """Return the writes after the one of this number, and the number of the last one. A job that a
    transaction deletes and inserts again, among the live ones and in the history, is one write."""
    writes: list[Write] = []
    moved: dict[tuple[int, int], int] = {}
    for number, old, new, transaction in execute(
        "SELECT id, was, became, transaction FROM machine_write WHERE id > %(last)s ORDER BY id",
        {"last": last},
    ):
        last = number
        was, became = Row.read(old), Row.read(new)
        if was is None and became is not None and (became.id, transaction) in moved:
            place = moved.pop((became.id, transaction))
            writes[place] = (writes[place][0], became)
            continue
        if was is not None and became is None:
            moved[was.id, transaction] = len(writes)
        writes.append((was, became))
    return writes, last


def execute(statements: str, params: dict[str, Any] | None = None) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statements, params)
        return cursor.fetchall() if cursor.description else []
