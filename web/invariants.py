"""Invariants of the web: stored answers are deleted in time."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tailrace.db.query import database_now
from tailrace.jobs.platform.requests.request_keys import HOURS
from tailrace.jobs.runtime.invariant import Invariant
from tailrace.web.models import AnsweredRequest


class AnswersAreKeptInTime(Invariant):
    """No stored Idempotency-Key of the API, nor its answer, is older than a day."""

    name = "web.answers_are_kept_in_time"
    every = 60
    limit = 5000

    def find(self) -> Sequence[Any]:
        before = database_now() - timedelta(hours=HOURS)
        old = AnsweredRequest.objects.filter(created_at__lt=before).order_by("created_at")
        return list(old.values_list("pk", flat=True)[: self.limit])

    def repair(self, violations: Sequence[Any]) -> int:
        return AnsweredRequest.objects.filter(pk__in=violations).delete()[0]
