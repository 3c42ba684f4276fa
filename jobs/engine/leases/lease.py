"""Watch the claims of this process while their handlers run.

One thread renews the leases of the claims. During a slow call it settles the jobs that ended before
it and gives back the jobs that wait behind it. It also ends the process if a shutdown takes too
long.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from django.db import DatabaseError, InterfaceError

from tailrace.db import connections
from tailrace.jobs.engine.leases import give_back
from tailrace.jobs.engine.leases.held import HeldClaim
from tailrace.jobs.engine.leases.renew import renew
from tailrace.jobs.runtime import shutdown, thread_failures

log = structlog.get_logger(__name__)

IDLE_SECONDS = 30
"""The thread ends if there was no claim for this long."""
POLL_SECONDS = 0.25
"""Time between two checks of the claims."""
SLOW_SECONDS = 0.5
"""If a call takes longer, the jobs that wait behind it are given back."""
SHOWN_JOBS = 20


@contextmanager
def watched(held: HeldClaim) -> Iterator[None]:
    """Watch this claim until the end of the block. The thread opens a connection only when it first
    needs the database, so not for short blocks. It continues after a database error."""
    if connections.is_one.get():  # the thread would not see the claim
        yield
        return
    _watcher.add(held)
    try:
        yield
    finally:
        _watcher.remove(held)


class _Watcher:
    """The claims of this process, and the thread that watches them."""

    def __init__(self) -> None:
        self._begin()
        os.register_at_fork(after_in_child=self._begin)  # the thread stays in the parent

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._renew_at: dict[HeldClaim, float] = {}
        self._idle_since = 0.0
        self._runs = False

    def add(self, held: HeldClaim) -> None:
        with self._changed:
            self._renew_at[held] = time.monotonic() + _interval(held)
            if self._runs:
                return
            self._runs = True
        try:
            threading.Thread(target=self._work, name="lease", daemon=True).start()
        except RuntimeError as error:  # continue: the work may be done before the lease ends
            log.warning("lease.no_thread", error=str(error))
            self._runs = False

    def remove(self, held: HeldClaim) -> None:
        with self._changed:
            del self._renew_at[held]
            self._idle_since = time.monotonic()

    def _work(self) -> None:
        with connections.engine():
            thread_failures.keep_running("lease", self._watch)

    def _watch(self) -> None:
        while self._continues():
            for held, renew_at in self._claims():
                try:
                    self._check(held, renew_at)
                except Exception as error:  # usually a database error; check the other claims
                    log.warning("lease.not_renewed", jobs=len(held.jobs), error=str(error))
                    connections.current().close()
            if shutdown.is_stuck():
                self._abandon()
            time.sleep(POLL_SECONDS)
        connections.current().close()

    def _continues(self) -> bool:
        """Whether the thread continues. Without claims it ends after IDLE_SECONDS, or at once if it
        has a connection."""
        with self._changed:
            idle = not self._renew_at and (
                connections.current().connection is not None
                or time.monotonic() - self._idle_since > IDLE_SECONDS
            )
            if idle:
                self._runs = False
            return not idle

    def _claims(self) -> list[tuple[HeldClaim, float]]:
        with self._changed:
            return list(self._renew_at.items())

    def _check(self, held: HeldClaim, renew_at: float) -> None:
        shutdown.pass_on()
        now = time.monotonic()
        if now - held.began_at > SLOW_SECONDS or shutdown.requested():
            held.ended.settle_behind_slow_call()
            give_back.give_back_waiting(held)
        if now < renew_at:
            return
        with self._changed:
            if held in self._renew_at:
                self._renew_at[held] = now + _interval(held)
        renew(held.jobs)

    def _abandon(self) -> None:
        """End the process, since its calls cannot be interrupted; other workers run their jobs."""
        claims = [held for held, _renew_at in self._claims()]
        if not claims:
            return
        jobs = [job.id for held in claims for job in held.running()]
        log.error("shutdown.abandoned", count=len(jobs), jobs=jobs[:SHOWN_JOBS])
        for held in claims:
            try:
                give_back.give_back_running(held)
            except (DatabaseError, InterfaceError) as error:
                log.warning("shutdown.not_given_back", error=str(error))
        os._exit(1)


def _interval(held: HeldClaim) -> float:
    return held.handler.claim_timeout / 3


_watcher = _Watcher()
