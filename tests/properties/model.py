"""What the state machine holds to be true of the engine: told of every write, it judges each.

A trigger writes down each change of a job's row, from whatever connection it comes, so that no move
is missed that a drain or a race makes within one step.
"""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, connections

from events import clock
from jobs import registry, run
from jobs.claimed import ClaimedJob
from jobs.outcomes import Cancel, Permanent, Retry, Skip, Snooze
from jobs.states import DONE, FINISHED, LIVE, MOVES, REPLAYABLE, UNSTARTED, State

Moves = frozenset[tuple[State, State]]
_CLAIMS: Moves = frozenset({(State.PENDING, State.RUNNING)})
_ENDS: Moves = frozenset(product([State.RUNNING], MOVES[State.RUNNING]))
_LOSSES = _ENDS - {(State.RUNNING, State.COMPLETED)}
_RELEASES: Moves = frozenset(product([State.WAITING], [State.PENDING, State.CANCELLED]))
_CANCELS: Moves = frozenset(product(UNSTARTED, [State.CANCELLED]))
_BURIALS: Moves = frozenset({(State.PENDING, State.FAILED)})
VERBS: dict[str, Moves] = dict.fromkeys(("enqueue", "publish", "look", "prune"), frozenset()) | {
    "claim": _CLAIMS,
    "settle": _ENDS | _RELEASES,
    "drain": _CLAIMS | _ENDS | _RELEASES,
    "rescue": _LOSSES | _RELEASES,
    "tick": _LOSSES | _RELEASES,
    "sweep": _LOSSES | _RELEASES | _BURIALS,
    "cancel": _CANCELS,
    "replay": frozenset(product(REPLAYABLE, UNSTARTED)),
    "race": _CLAIMS | _ENDS | _RELEASES | _CANCELS,
}
"""What each thing that one can do may move; everything else must leave the states as they are."""

BEATS = ("rescue", "tick", "sweep")

LISTEN = """
DROP TABLE IF EXISTS machine_heard;
CREATE TABLE machine_heard (id bigserial PRIMARY KEY, was jsonb, became jsonb);
CREATE OR REPLACE FUNCTION machine_hear() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO machine_heard (was, became) VALUES (to_jsonb(OLD), to_jsonb(NEW));
  RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER machine_hear AFTER INSERT OR UPDATE OR DELETE ON jobs_job
  FOR EACH ROW EXECUTE FUNCTION machine_hear();
"""
DEAFEN = """
DROP FUNCTION IF EXISTS machine_hear CASCADE;
DROP TABLE IF EXISTS machine_heard;
"""
EMPTY = """
TRUNCATE machine_heard, jobs_job, jobs_attempt, jobs_sweeprun, jobs_slot, jobs_schedule,
  jobs_throughput, jobs_pulse, events_event RESTART IDENTITY CASCADE;
UPDATE jobs_queue SET paused_at = NULL, max_running = NULL, awake = false, awake_at = NULL,
  drained_at = NULL, resends = 0
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
    cancel_requested: bool
    isolate: bool

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


Jobs = dict[int, Row]
seen: set[State] = set()
"""The states that jobs have come to, in all examples."""


@dataclass(slots=True)
class Model:
    """The jobs as the writes so far have left them, and what the machine has asked for."""

    jobs: Jobs = field(default_factory=dict)
    made: set[int] = field(default_factory=set)
    pruned: set[int] = field(default_factory=set)
    claims: set[tuple[int, int]] = field(default_factory=set)
    paused: set[str] = field(default_factory=set)
    limits: dict[str, int | None] = field(default_factory=dict)
    returned: set[tuple[int, int]] = field(default_factory=set)
    """(job, claim_no) whose handler has returned as from work that is done."""
    heard: int = 0

    def live(self, jobs: Sequence[ClaimedJob]) -> list[ClaimedJob]:
        """The claims that still give their worker the right to settle."""
        running = [job for job in self.jobs.values() if job.state == State.RUNNING]
        claims = {(job.id, job.claim_no, job.worker) for job in running}
        return [job for job in jobs if (job.id, job.claim_no, job.worker) in claims]

    def unstarted(self, handler: str, key: str | None) -> list[int]:
        """The unstarted jobs with this unique key."""
        mine = [job for job in self.jobs.values() if job.handler == handler]
        same = [job.id for job in mine if job.unique_key == key and job.state in UNSTARTED]
        return same if key is not None else []

    def running(self, handler: str, lane: str | None = None) -> int:
        """How many jobs of the queue run, in this lane or in all of them."""
        mine = [job for job in self.jobs.values() if job.handler == handler]
        return sum(job.state == State.RUNNING and lane in (None, job.lane) for job in mine)

    def due(self) -> set[str]:
        """The queues with work that is due."""
        pending = [job for job in self.jobs.values() if job.state == State.PENDING]
        return {job.handler for job in pending if job.due_at <= clock.now()}

    def expired(self) -> int:
        """How many claims a rescue ends now: of those with one unique key, one at a time."""
        leased = [job for job in self.jobs.values() if job.state == State.RUNNING]
        ended = [job for job in leased if job.lease_until and job.lease_until < clock.now()]
        return len({(job.handler, job.unique_key or job.id) for job in ended})

    def take(self, jobs: Sequence[ClaimedJob]) -> None:
        """A worker is given these claims: nobody was before, and one that was lost is alone."""
        for job in jobs:
            assert (job.id, job.claim_no) not in self.claims, f"claimed twice: {job.id}"
            self.claims.add((job.id, job.claim_no))
            assert len(jobs) == 1 or not self.jobs[job.id].isolate, f"with others: {job.id}"

    def listen(self, verb: str) -> list[tuple[State, State]]:
        """Judge what was written since the last time; return the moves, in their order."""
        before, moves = dict(self.jobs), []
        told = "SELECT id, was, became FROM machine_heard WHERE id > %(heard)s ORDER BY id"
        for number, old, new in execute(told, {"heard": self.heard}):
            self.heard = number
            was, became = Row.read(old), Row.read(new)
            self._judge(verb, was, became, before)
            if became is not None:
                self.jobs[became.id] = became
            if was is not None and became is not None and was.state != became.state:
                moves.append((was.state, became.state))
                seen.add(became.state)
        return moves

    def _judge(self, verb: str, was: Row | None, became: Row | None, before: Jobs) -> None:
        at = f"{verb}: {was} -> {became}"
        if was is None:
            assert became is not None
            self._is_made(verb, became, at)
        elif became is None:
            self._is_pruned(verb, was, at)
        else:
            assert was == self.jobs[was.id], f"{at}: a write was not heard of"
            self._is_changed(verb, was, became, at)
            if (was.state, became.state) in _CLAIMS:
                self._is_claimed(was, became, at)
                # In a race, what became pending during it may have come after the claim's look.
                self._is_in_order(was, before if verb == "race" else self.jobs, at)
            elif became.state == State.PENDING and was.state in (State.WAITING, *FINISHED):
                # A replay goes by how the parent stood before it, which it may replay as well.
                parent = (before if verb == "replay" else self.jobs).get(was.after_id or 0)
                assert parent is None or parent.state in DONE, f"{at}: before {parent}"

    def _is_made(self, verb: str, job: Row, at: str) -> None:
        assert verb in ("enqueue", "publish"), at
        assert job.state in UNSTARTED, at
        assert (job.claim_no, job.attempt) == (0, 0), at
        assert not self.unstarted(job.handler, job.unique_key), f"{at}: its key is taken"
        self.made.add(job.id)

    def _is_pruned(self, verb: str, job: Row, at: str) -> None:
        assert verb == "prune", f"{at}: a job is lost"
        assert job.state in FINISHED, at
        assert job.finished_at is not None, at
        failed, most = settings.JOBS_FAILED_RETENTION_DAYS, settings.JOBS_RETENTION_DAYS
        kept = timedelta(days=failed if job.state == State.FAILED else most)
        assert job.finished_at < clock.now() - kept, f"{at}: too young"
        self.pruned.add(job.id)
        del self.jobs[job.id]

    def _is_changed(self, verb: str, was: Row, became: Row, at: str) -> None:
        move = (was.state, became.state)
        claimed = move in _CLAIMS
        assert became.claim_no == was.claim_no + claimed, f"{at}: claim_no"
        for name in ("handler", "lane", "unique_key", "after_id"):
            assert getattr(became, name) == getattr(was, name), f"{at}: {name}"
        if was.state == became.state:
            assert became.attempt == was.attempt, at
            return
        assert became.state in MOVES[was.state], f"{at}: no legal move"
        assert move in VERBS[verb], f"{at}: not a move of this verb"
        if verb in BEATS and was.state == State.RUNNING:
            assert was.lease_until is not None, at
            assert was.lease_until < clock.now(), f"{at}: its lease holds"
        if verb == "replay":
            assert became.attempt == 0, at
        elif was.state == State.RUNNING:
            uncharged = verb not in BEATS and became.attempt == was.attempt - 1
            assert uncharged or became.attempt == was.attempt, at
        elif not claimed:
            assert became.attempt == was.attempt, at
        if became.state == State.COMPLETED:
            assert (was.id, was.claim_no) in self.returned, f"{at}: nobody did it"
        if move == (State.WAITING, State.CANCELLED) and verb not in ("cancel", "race"):
            parent = self.jobs.get(was.after_id or 0)
            assert parent is None or parent.state in (State.CANCELLED, State.FAILED), f"{at}: why?"

    def _is_claimed(self, was: Row, became: Row, at: str) -> None:
        handler = registry.get(was.handler)
        assert handler.name not in self.paused, f"{at}: the queue is paused"
        assert became.attempt == was.attempt + 1, at
        assert became.attempt <= handler.max_attempts, f"{at}: too many attempts"
        assert became.started_at is not None, at
        assert was.due_at <= became.started_at, f"{at}: it is due at {was.due_at}"
        most = self.limits.get(handler.name)
        running = self.running(handler.name) + 1
        assert most is None or running <= most, f"{at}: {running} run, at most {most} may"

    def _is_in_order(self, was: Row, jobs: Jobs, at: str) -> None:
        """Of an ordered lane, the oldest pending job is claimed, and while none runs."""
        if not registry.get(was.handler).ordered:
            return
        assert not self.running(was.handler, was.lane), f"{at}: its lane is busy"
        mine = (was.handler, was.lane, State.PENDING)
        pending = {job.id for job in jobs.values() if (job.handler, job.lane, job.state) == mine}
        older = [id for id in pending if id < was.id and self.jobs[id].state == State.PENDING]
        assert not older, f"{at}: its lane has older ones: {older}"


RAISED = {
    "retry": lambda: Retry("at once", after=0),
    "raise": lambda: RuntimeError("as asked"),
    "permanent": lambda: Permanent("never"),
    "snooze": lambda: Snooze("not yet", seconds=40),
    "skip": lambda: Skip("nothing to do"),
    "cancel": lambda: Cancel("nobody wants it"),
}
"""What a handler raises, by verdict; with the others it returns, or is not called."""
VERDICTS = ("complete", "result", "check", "hand back", *RAISED)


@dataclass(slots=True)
class Answers:
    """What the handlers say of their jobs."""

    returned: set[tuple[int, int]]
    verdicts: Sequence[str] = VERDICTS[:1]

    def verdict(self, job: ClaimedJob) -> str:
        return self.verdicts[(job.id + job.claim_no) % len(self.verdicts)]

    def handle(self, work: Any) -> Any:
        """What every handler does: with one job, or with a batch."""
        if isinstance(work, ClaimedJob):
            return self._answer(work)
        for job in work:
            verdict = self.verdict(job)
            if len(work) > 1 and verdict in ("retry", "permanent", "snooze", "skip"):
                job.outcome = RAISED[verdict]()
            else:
                self._answer(job)
        return None

    def _answer(self, job: ClaimedJob) -> Any:
        verdict = self.verdict(job)
        if verdict in RAISED:
            raise RAISED[verdict]()
        if verdict == "check":
            job.check_cancelled()
        self.returned.add((job.id, job.claim_no))
        return {"done": job.id} if verdict == "result" else None

    def run(self, jobs: Sequence[ClaimedJob], verdicts: Sequence[str]) -> list[run.Verdict]:
        """Let their handler run these jobs; return what the engine makes of its answers."""
        self.verdicts = verdicts
        back = [job for job in jobs if self.verdict(job) == "hand back"]
        rest = [job for job in jobs if job not in back]
        ended = list(run.run(rest[0].handler, rest, time.monotonic() + 60)) if rest else []
        return ended + [run.Verdict(job, State.PENDING, charged=False) for job in back]


def expected(job: Row, verdict: str, taken: bool) -> State:
    """The state in which a claim that is still live is settled."""
    ends = {"skip": State.SKIPPED, "cancel": State.CANCELLED, "permanent": State.FAILED}
    ends |= {"complete": State.COMPLETED, "result": State.COMPLETED}
    if verdict in ends:
        return ends[verdict]
    if verdict == "check":
        return State.CANCELLED if job.cancel_requested else State.COMPLETED
    most = registry.get(job.handler).max_attempts
    if verdict in ("retry", "raise") and job.attempt >= most:
        return State.FAILED
    otherwise = State.SKIPPED if taken else State.PENDING
    return State.CANCELLED if job.cancel_requested else otherwise


_LIVE = ", ".join(f"'{state}'" for state in LIVE)
_UNSTARTED = ", ".join(f"'{state}'" for state in UNSTARTED)
_NEVER = {
    "two unstarted jobs of one unique key": f"""
      SELECT min(id) FROM jobs_job WHERE unique_key IS NOT NULL AND state IN ({_UNSTARTED})
      GROUP BY handler, unique_key HAVING count(*) > 1""",
    "two jobs run in an ordered lane": """
      SELECT min(j.id) FROM jobs_job j, unnest(%(ordered)s::text[]) h (name)
      WHERE j.handler = h.name AND j.state = 'running'
      GROUP BY j.handler, j.lane HAVING count(*) > 1""",
    "more attempts than the maximum": """
      SELECT j.id FROM jobs_job j
      JOIN unnest(%(handlers)s::text[], %(most)s::int[]) h (name, most) ON h.name = j.handler
      WHERE j.attempt > h.most""",
    "a job that belies its state": f"""
      SELECT id FROM jobs_job WHERE (state = 'running') <> (lease_until IS NOT NULL)
        OR (finished_at IS NULL) <> (state IN ({_LIVE}))
        OR state IN ({_UNSTARTED}) AND cancel_requested
        OR state = 'running' AND (claim_no = 0 OR attempt = 0 OR worker = '')""",
    "an attempt of a claim that its job has not had": """
      SELECT a.job_id FROM jobs_attempt a LEFT JOIN jobs_job j ON j.id = a.job_id
      WHERE j.id IS NULL OR j.claim_no < a.claim_no""",
    "a failure without its attempt": """
      SELECT j.id FROM jobs_job j WHERE state = 'failed' AND claim_no > 0 AND NOT EXISTS (
        SELECT 1 FROM jobs_attempt a WHERE a.job_id = j.id AND a.claim_no = j.claim_no)""",
}  # fmt: skip
_LOOK = " UNION ALL ".join(f"SELECT '{name}', w.* FROM ({sql}) w" for name, sql in _NEVER.items())


def wrongs() -> list[tuple[str, int]]:
    """What the tables say that must never be so, and of which job."""
    handlers = registry.everything()
    params = {
        "handlers": list(handlers),
        "most": [handler.max_attempts for handler in handlers.values()],
        "ordered": [name for name, handler in handlers.items() if handler.ordered],
    }
    return execute(_LOOK, params)


class Died(BaseException):
    """A process is gone; the server rolls its transaction back."""


@contextmanager
def dying(after: int) -> Iterator[None]:
    """Let this process die where it would execute one more than so many statements; 0: it lives.
    Below 0 it lives, too, but after so many its connection is gone."""
    executed = 0

    def statement(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal executed
        if 0 < after <= executed:
            raise Died
        if executed == -after > 0:
            connection.connection.close()
        executed += 1
        return execute(sql, params, many, context)

    try:
        with connection.execute_wrapper(statement):
            yield
    except Died:
        connection.connection.close()  # whatever transaction it was in
        del connections[connection.alias]  # the next process begins anew
    except (OperationalError, InterfaceError):
        assert after < 0
    if after < 0:
        assert not connection.in_atomic_block, "this process will never commit again"
        connection.close()


def execute(statements: str, params: dict[str, Any] | None = None) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statements, params)
        return cursor.fetchall() if cursor.description else []
