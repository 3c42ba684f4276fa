from django.db import models

from tailrace.events.models import Event


class BuildLogTail(models.Model):
    """The end of the log of a failed build, for mails about the build. No page shows it."""

    # No database constraint: tails are kept for a shorter time than events.
    event = models.OneToOneField(
        Event, models.DO_NOTHING, db_constraint=False, related_name="build_log_tail"
    )
    text = models.TextField(default="", blank=True)
    problem = models.TextField(default="", blank=True, help_text="why there is no text")
    requested_at = models.DateTimeField(db_index=True)
    fetched_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"log of event {self.event_id}"
