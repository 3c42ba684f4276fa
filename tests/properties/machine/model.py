"""The model of the engine that the state machine checks every write against."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import product

from django.conf import settings

from tailrace.db import clock
from tailrace.jobs.engine import registry
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.models import Dependency
from tailrace.jobs.runtime.states import DONE, FINISHED, LIVE, MOVES, REPLAYABLE, UNSTARTED, State
from tests.properties.machine.recording import Row, writes_after

Moves = frozenset[tuple[State, State]]


_CLAIMS: Moves = frozenset({(State.PENDING, State.RUNNING)})


_ENDS: Moves = frozenset(product([State.RUNNING], MOVES[State.RUNNING]))


_LOSSES = _ENDS - {(State.RUNNING, State.COMPLETED)}


_RELEASES: Moves = frozenset(
    product([State.WAITING], [State.PENDING, State.CANCELLED, State.SKIPPED])
)


_CANCELS: Moves = frozenset(product(UNSTARTED, [State.CANCELLED]))


_ORPHANS: Moves = frozenset({(State.PENDING, State.FAILED)})


MOVES_OF: dict[str, Moves] = dict.fromkeys(("publish", "look", "prune"), frozenset()) | {
    "enqueue": _RELEASES,  # of others that wait for the same parent, if a crash forgot them
    "claim": _CLAIMS,
    "settle": _ENDS | _RELEASES,
    "drain": _CLAIMS | _ENDS | _RELEASES,
    "rescue": _LOSSES | _RELEASES,
    "tick": _LOSSES | _RELEASES,
    "sweep": _LOSSES | _RELEASES | _ORPHANS,
    "cancel": _CANCELS | _RELEASES,
    "replay": frozenset(product(REPLAYABLE, UNSTARTED)) | _RELEASES,
    "race": _CLAIMS | _ENDS | _RELEASES | _CANCELS,
}
"""The moves that each kind of step may cause; any other change of a state is an error."""


BEATS = ("rescue", "tick", "sweep")


Jobs = dict[int, Row]


seen: set[State] = set()
"""The states that jobs have come to, in all examples."""


@dataclass(slots=True)
class Model:
    """The jobs after the writes so far, and what the machine has set."""

    jobs: Jobs = field(default_factory=dict)
    created: set[int] = field(default_factory=set)
    pruned: set[int] = field(default_factory=set)
    claims: set[tuple[int, int]] = field(default_factory=set)
    paused: set[str] = field(default_factory=set)
    limits: dict[str, int | None] = field(default_factory=dict)
    returned: set[tuple[int, int]] = field(default_factory=set)
    """(job, claim_no) whose handler has returned as from work that is done."""
    needs: dict[int, dict[int, str]] = field(default_factory=dict)
    """How the parents of a job of a flow must end, if it has more than one parent, or does not need
    success."""
    last_write: int = 0

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

    def take(self, jobs: Sequence[ClaimedJob], settled: Container[int]) -> None:
        """A worker got these claims: each for the first time, and an isolated job alone."""
        for job in jobs:
            assert (job.id, job.claim_no) not in self.claims, f"claimed twice: {job.id}"
            self.claims.add((job.id, job.claim_no))
            alone = self.jobs[job.id].isolate and job.id not in settled
            assert len(jobs) == 1 or not alone, f"with others: {job.id}"

    def read_writes(self, verb: str) -> list[tuple[State, State]]:
        """Check the writes since the last time; return the moves, in their order."""
        before, moves = dict(self.jobs), []
        writes, self.last_write = writes_after(self.last_write)
        for was, became in writes:
            self._check_write(verb, was, became, before)
            if became is not None:
                self.jobs[became.id] = became
            if was is not None and became is not None and was.state != became.state:
                moves.append((was.state, became.state))
                seen.add(became.state)
        return moves

    def _check_write(self, verb: str, was: Row | None, became: Row | None, before: Jobs) -> None:
        at = f"{verb}: {was} -> {became}"
        if was is None:
            assert became is not None
            self._is_created(verb, became, at)
        elif became is None:
            self._is_pruned(verb, was, at)
        else:
            assert was == self.jobs[was.id], f"{at}: a write was missed"
            self._is_changed(verb, was, became, at)
            if (was.state, became.state) in _CLAIMS:
                self._is_claimed(was, became, at)
                # In a race, what became pending during it may have come after the claim's look.
                self._is_in_order(was, before if verb == "race" else self.jobs, at)
            elif was.state == State.WAITING and was.id in self.needs:
                self._is_decided(verb, became, at)
            elif became.state == State.PENDING and was.state in (State.WAITING, *FINISHED):
                # A replay goes by how the parent stood before it, which it may replay as well.
                parent = (before if verb == "replay" else self.jobs).get(was.after_id or 0)
                assert parent is None or parent.state in DONE, f"{at}: before {parent}"

    def _is_decided(self, verb: str, became: Row, at: str) -> None:
        """A job of a flow becomes what its parents let it become, when all have ended."""
        if became.state == State.WAITING or (became.state, verb) == (State.CANCELLED, "cancel"):
            return
        needs = self.needs[became.id]
        parents = {id: self.jobs[id].state for id in needs if id in self.jobs}
        lacking = [id for id in needs if needs[id] == "success" and parents.get(id) not in DONE]
        if became.state == State.CANCELLED:
            assert lacking or verb == "race" or parents.keys() < needs.keys(), f"{at}: {parents}"
            return
        assert not {*parents.values()} & {*LIVE}, f"{at}: {parents}"
        assert not lacking, f"{at}: {parents}"
        wanted = [parents.get(id) for id, need in needs.items() if need == "failure"]
        failed = not wanted or bool({*wanted} & {State.FAILED, State.CANCELLED})
        assert became.state == (State.PENDING if failed else State.SKIPPED), f"{at}: {parents}"

    def _is_created(self, verb: str, job: Row, at: str) -> None:
        assert verb in ("enqueue", "publish"), at
        assert (job.claim_no, job.attempt) == (0, 0), at
        taken = self.unstarted(job.handler, job.unique_key)
        if job.state == State.SKIPPED:
            assert job.error == f"merged into job {taken[0]}", at
        else:
            assert job.state in UNSTARTED, at
            assert not taken, f"{at}: its key is taken"
        self.created.add(job.id)
        if job.flow_id is not None:
            rows = Dependency.objects.filter(job_id=job.id).values_list("parent_id", "need")
            self.needs |= {job.id: dict(rows)} if rows else {}

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
        for name in ("handler", "lane", "unique_key", "flow_id"):
            assert getattr(became, name) == getattr(was, name), f"{at}: {name}"
        watches = became.after_id in self.needs.get(was.id, {}) and was.state == State.WAITING
        assert watches or became.after_id == was.after_id, f"{at}: after_id"
        if was.state == became.state:
            assert became.attempt == was.attempt, at
            return
        assert became.state in MOVES[was.state], f"{at}: no legal move"
        assert move in MOVES_OF[verb], f"{at}: not a move of this verb"
        if verb in BEATS and was.state == State.RUNNING:
            assert was.lease_until is not None, at
            assert was.lease_until < clock.now(), f"{at}: its lease holds"
        if verb == "replay":
            assert became.attempt == 0, at
        elif was.state == State.RUNNING and verb in BEATS:
            assert became.attempt == was.attempt - (not was.begun), at
            assert was.begun or became.state != State.FAILED, f"{at}: it had not begun"
        elif was.state == State.RUNNING:
            assert became.attempt in (was.attempt, was.attempt - 1), at
        elif not claimed:
            assert became.attempt == was.attempt, at
        if became.state == State.COMPLETED:
            assert (was.id, was.claim_no) in self.returned, f"{at}: no handler completed it"
        if was.id in self.needs:
            return
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
