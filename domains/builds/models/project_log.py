from django.db import models
from django.db.models import Q

from tailrace.events.models import Event

BUILD_RESULTS = ("builds.build_success", "builds.build_fail")
"""Event types with many entries. These are kept for a shorter time than other entries."""


class ProjectLogEntry(models.Model):
    """An entry of a project's log. The complete payload is only in the event."""

    # No database constraint: entries and events are pruned separately, at different ages.
    event = models.OneToOneField(
        Event, models.DO_NOTHING, db_constraint=False, related_name="project_log_entry"
    )
    backend = models.TextField(default="", blank=True)
    project = models.TextField()
    package = models.TextField(default="", blank=True)
    user = models.TextField(default="", blank=True)
    request = models.TextField(default="", blank=True, help_text="the request's number")
    type = models.TextField(help_text="the event's type")
    occurred_at = models.DateTimeField()
    details = models.JSONField(default=dict, blank=True)

    class Meta:
        verbose_name_plural = "project log entries"
        indexes = [
            models.Index(fields=["project", "type", "-event"], name="tailrace_project_log_by_type"),
            models.Index(fields=["project", "-event"], name="tailrace_project_log_latest"),
            # For pruning, which reads build results and other entries separately, oldest first.
            models.Index(
                fields=["occurred_at"],
                name="tailrace_project_log_builds",
                condition=Q(type__in=BUILD_RESULTS),
            ),
            models.Index(
                fields=["occurred_at"],
                name="tailrace_project_log_others",
                condition=~Q(type__in=BUILD_RESULTS),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} in {self.project}"
