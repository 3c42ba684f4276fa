"""Settle the jobs of a claim whose calls have ended, also while a later call of it runs."""

from jobs.engine import totals
from jobs.engine.held import HeldClaim
from jobs.engine.settle import settle


def settle_ended(held: HeldClaim) -> None:
    """Settle what has ended, for the thread that works on the claim; `held.take_settled` returns
    what became of it."""
    with held.settling:
        _settle(held)


def settle_behind_slow_call(held: HeldClaim) -> None:
    """Settle what ended before the call that runs now: its effects are done, and without this a
    worker that is killed in the call would have them done again. For the thread that watches the
    claim, which waits for nobody; what it cannot settle is left to the other one."""
    if not held.settling.acquire(blocking=False):
        return
    try:
        if _settle(held, tries=1):
            totals.write_soon()  # the drain does so after the call
    finally:
        held.settling.release()


def _settle(held: HeldClaim, tries: int | None = None) -> int:
    """Return how many jobs were settled."""
    states: dict[int, str] = {}
    ended = held.take_ended()
    try:
        settle(ended, tries, states)
    except BaseException:
        if tries is not None:
            held.add_ended(*(v for v in ended if v.job.id not in states))
        raise
    finally:
        held.add_settled((v, states[v.job.id]) for v in ended if v.job.id in states)
    return len(states)
