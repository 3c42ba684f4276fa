"""Request the ends of build logs for mails, once per event for all of its recipients."""

from collections.abc import Mapping, Sequence

from django.conf import settings
from django.db import transaction

from tailrace.db import clock
from tailrace.domains.builds.backends.origin import reporter_of
from tailrace.domains.builds.models import BuildLogTail
from tailrace.events.publish import Recorded
from tailrace.jobs.enqueue import enqueue_many

LONGEST_WAIT = 60.0
"""Seconds after the request that mails wait for a log."""
NOT_FETCHED = f"it was not received within {LONGEST_WAIT:g} s"

Context = Mapping[str, str]


def contexts(events: Sequence[Recorded]) -> dict[int, Context | None]:
    """Return `log_tail` and `log_problem` for the templates of each event, by its id; None while
    the log is being fetched. Logs that were not requested yet are requested.

    Events that no backend's own log or bus reported must not cause requests: they are left out.
    """
    ids = [event.id for event in events if has_log(event)]
    rows = {row.event_id: row for row in BuildLogTail.objects.filter(event__in=ids)}
    if missing_ids := [id for id in ids if id not in rows]:
        _request(missing_ids)
    return {id: _context(rows.get(id)) for id in ids}


def has_log(event: Recorded) -> bool:
    """Return whether the event's build log can be requested from its backend."""
    return settings.OBS_LOG_TAIL_BYTES > 0 and reporter_of(event) in settings.OBS_BACKENDS


def _request(event_ids: Sequence[int]) -> None:
    rows = [BuildLogTail(event_id=id, requested_at=clock.now()) for id in event_ids]
    with transaction.atomic():
        BuildLogTail.objects.bulk_create(rows, ignore_conflicts=True)
        enqueue_many("builds.fetch_build_log", [{"event_id": id} for id in event_ids])


def _context(row: BuildLogTail | None) -> Context | None:
    if row is None:
        return None
    if row.fetched_at is not None:
        return {"log_tail": row.text, "log_problem": row.problem}
    if (clock.now() - row.requested_at).total_seconds() < LONGEST_WAIT:
        return None
    return {"log_tail": "", "log_problem": NOT_FETCHED}
