"""poll: one job reads one backend's notification log."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError

from domains.builds.sources.client import Backend
from domains.builds.sources.http import BackendError
from domains.builds.sources.reader import Reader
from domains.builds.sources.turn import NotNow, Turn, TurnLost
from jobs.claimed import ClaimedJob
from jobs.handler import Backoff, Every, Handler
from jobs.outcomes import LeaseLost, Skip, Snooze

log = structlog.get_logger(__name__)


class Poll(Handler):
    """Read the notification log of one backend from where it was left.

    The routing key is the backend's name in OBS_BACKEND_URL. A backend that is away or answers
    nonsense is counted on its poller, not on the job, which comes again when the backoff is over.
    """

    name = "builds.poll"
    batch_size = 1
    max_attempts = 3
    backoff = Backoff(5, 30)
    claim_timeout = 30
    priority = 0
    schedule = Every(1 if settings.OBS_LONG_POLL else settings.OBS_POLL_SECONDS)

    def schedule_keys(self) -> Sequence[str]:
        return tuple(settings.OBS_BACKENDS)

    def handle(self, job: ClaimedJob) -> dict[str, Any]:
        url = settings.OBS_BACKENDS.get(job.routing_key)
        if url is None:
            raise Skip(f"OBS_BACKEND_URL has no backend {job.routing_key!r}")
        with Backend(job.routing_key, url) as backend:
            try:
                turn = Turn.take(job.routing_key, f"{job.id}.{job.claim_no}")
            except NotNow as reason:
                raise Skip(str(reason)) from None
            return self._read(Reader(backend, turn, job.check_cancelled))

    def _read(self, reader: Reader) -> dict[str, Any]:
        turn = reader.turn
        try:
            more = reader.read()
        except BackendError as error:
            wait = turn.fail(str(error))
            log.warning("poll.failed", backend=turn.name, error=str(error), retry_in=round(wait, 1))
            raise Snooze(str(error), seconds=wait) from None
        except TurnLost as error:
            raise LeaseLost(str(error)) from None
        except BaseException:
            with suppress(DatabaseError):
                turn.release()
            raise
        turn.release()
        if more:
            raise Snooze(f"read {reader.events} events, more wait", seconds=0)
        return {"events": reader.events, "pages": reader.pages, "next": turn.next_number}
