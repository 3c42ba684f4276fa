"""retention: project log entries leave when their time is over, build results sooner."""

from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.db.models import Q

from domains.builds.models import ProjectLogEntry
from domains.builds.models.project_log import BUILD_RESULTS
from events import clock
from jobs.invariants import Invariant


class ProjectLogIsKeptInTime(Invariant):
    """No project log entry is older than PROJECT_LOG_BUILD_DAYS or PROJECT_LOG_DAYS."""

    name = "builds.project_log_is_kept_in_time"
    every = 60
    limit = 5000

    def find(self) -> Sequence[int]:
        builds = Q(type__in=BUILD_RESULTS)
        return [
            *self._older(builds, settings.PROJECT_LOG_BUILD_DAYS),
            *self._older(~builds, settings.PROJECT_LOG_DAYS),
        ]

    def repair(self, found: Sequence[int]) -> int:
        return ProjectLogEntry.objects.filter(pk__in=found).delete()[0]

    def _older(self, kind: Q, days: int) -> list[int]:
        old = ProjectLogEntry.objects.filter(
            kind, occurred_at__lt=clock.now() - timedelta(days=days)
        )
        return list(old.order_by("occurred_at").values_list("pk", flat=True)[: self.limit // 2])
