"""sweep: check every invariant that is due, repair what does not hold, and record the run."""

import time

import structlog
from django.db import connection, transaction

from events import clock
from jobs.invariants import Invariant, everything
from jobs.models import SweepRun

log = structlog.get_logger(__name__)


def sweep(names: list[str] | None = None) -> list[SweepRun]:
    """Check the invariants whose interval has passed (or just those named); return the runs.

    An invariant that fails stops no other; one that another sweep is at is recorded as skipped.
    """
    if names is not None:
        chosen = [invariant for invariant in everything() if invariant.name in names]
    else:
        chosen = [invariant for invariant in everything() if _is_due(invariant)]
    return [check(invariant) for invariant in chosen]


def check(invariant: Invariant) -> SweepRun:
    """Check one invariant now."""
    began = time.monotonic()
    run = SweepRun(invariant=invariant.name, outcome=SweepRun.Outcome.CHECKED)
    try:
        with transaction.atomic():
            if _alone(invariant):
                _repair(invariant, run)
            else:
                run.outcome = SweepRun.Outcome.SKIPPED
    except Exception as error:
        # Whatever an app's invariant raises: the others still get their turn.
        run.outcome, run.repaired = SweepRun.Outcome.ERROR, 0
        run.error = f"{type(error).__name__}: {error}"[:2000]
        log.exception("sweep.failed", invariant=invariant.name)
    run.started_at = clock.now()
    run.duration_ms = int((time.monotonic() - began) * 1000)
    run.save()
    return run


def _repair(invariant: Invariant, run: SweepRun) -> None:
    found = invariant.find()
    run.found = len(found)
    if found:
        run.repaired = invariant.repair(found)
        log.info("sweep.repaired", invariant=invariant.name, found=run.found, repaired=run.repaired)


def _alone(invariant: Invariant) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_try_advisory_xact_lock(hashtext('jobs.sweep'), hashtext(%s))",
            [invariant.name],
        )
        return bool(cursor.fetchone()[0])


def _is_due(invariant: Invariant) -> bool:
    # A little early is on time: beat's own interval is not exact.
    last = SweepRun.objects.filter(invariant=invariant.name).order_by("-id").first()
    return last is None or (clock.now() - last.started_at).total_seconds() >= invariant.every * 0.9
