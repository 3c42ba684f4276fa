"""Settle ended calls in groups, repeatedly until it succeeds, then report the failures."""

import time
from collections import Counter, defaultdict

import structlog
from django.db import IntegrityError, InterfaceError, OperationalError

from tailrace.db import connections
from tailrace.db.query import execute
from tailrace.jobs.engine.in_flight.call import Call
from tailrace.jobs.engine.run.failure import failure_of, verdict_of
from tailrace.jobs.engine.settling.settle import settle
from tailrace.jobs.handler import Permanent
from tailrace.jobs.runtime.report import report_later

log = structlog.get_logger(__name__)

SHORTEST_WAIT, LONGEST_WAIT = 0.1, 2.0
"""Seconds until a failed settlement is tried again: twice as long each time."""
TEMPORARY_ERRORS = (OperationalError, InterfaceError, IntegrityError)
"""Errors after which another attempt to settle may succeed."""
LOCK_MILLISECONDS = 200
"""How long a settlement waits for a locked row. The other jobs of the group wait with it."""


class Settlement:
    """The ended calls that are not settled yet. Used by the engine thread."""

    def __init__(self) -> None:
        self._ended: list[Call] = []
        self._failed: list[Call] = []
        """Calls whose settlement failed. They are settled one by one, after a wait."""
        self._retry_at, self._wait = 0.0, 0.0
        self._session: object = None

    def __len__(self) -> int:
        return len(self._ended) + len(self._failed)

    def add(self, call: Call) -> None:
        self._ended.append(call)

    def next_at(self, now: float) -> float | None:
        """Return the time of the next settlement; None if there are no calls to settle."""
        return now if self._ended else self._retry_at if self._failed else None

    def settle(self, now: float) -> tuple[list[Call], Counter[tuple[str, str]]]:
        """Settle what is possible. Return the calls that are done (settled, or claimed by another
        worker), and the number of settled jobs by handler and state."""
        done: list[Call] = []
        tally: Counter[tuple[str, str]] = Counter()
        by_handler = defaultdict(list)
        for call in self._ended:
            by_handler[call.handler.name].append(call)
        self._ended = []
        groups = list(by_handler.values())
        if now >= self._retry_at:
            groups += [[call] for call in self._failed]
            self._failed = []
        for group in groups:
            if not self._settle(group, done, tally):
                self._failed += [call for call in group if call not in done]
        if self._failed and time.monotonic() >= self._retry_at:
            self._wait = min(max(2 * self._wait, SHORTEST_WAIT), LONGEST_WAIT)
            self._retry_at = time.monotonic() + self._wait
        elif not self._failed:
            self._wait = self._retry_at = 0.0
        return done, tally

    def _settle(self, group: list[Call], done: list[Call], tally: Counter[tuple[str, str]]) -> bool:
        states: dict[int, str] = {}
        is_sound, name = True, group[0].handler.name
        verdicts = [call.verdict for call in group if call.verdict is not None]
        try:
            self._limit_waits()
            settle(verdicts, 1, states)
        except Exception as error:
            is_sound = False
            jobs = [call.job.id for call in group if call.job.id not in states][:20]
            words = str(error).strip()
            log.warning("in_flight.not_settled", queue=name, jobs=jobs, error=words)
            if not connections.timed_out(error):
                connections.current().close()
            if len(group) == 1 and not isinstance(error, TEMPORARY_ERRORS):
                _replace_verdict(group[0], error)
        for call in group:
            if is_sound or call.job.id in states:
                done.append(call)
            if state := states.get(call.job.id):
                tally[name, state] += 1
                _report(call)
        return is_sound

    def _limit_waits(self) -> None:
        """Set the lock timeout in a new session. Behind a pooler the general timeouts apply."""
        connection = connections.current()
        connection.ensure_connection()
        if connection.connection is not self._session and not connections.prefix():
            execute(f"SET lock_timeout = {LOCK_MILLISECONDS}")
            self._session = connection.connection


def _replace_verdict(call: Call, error: Exception) -> None:
    """Let the job fail, since the database would refuse its verdict each time."""
    call.verdict = verdict_of(call.job, Permanent(f"not settled: {type(error).__name__}"))


def _report(call: Call) -> None:
    try:
        if call.verdict is not None and (failure := failure_of(call.verdict)):
            report_later([failure])
    except Exception:  # the call is settled, so an error must not escape
        log.exception("in_flight.not_reported", job_id=call.job.id)
