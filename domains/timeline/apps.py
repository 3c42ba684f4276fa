from django.apps import AppConfig


class TimelineConfig(AppConfig):
    """Where a person was, from imported files and from their phone."""

    name = "tailrace.domains.timeline"
    label = "tailrace_timeline"
    default_auto_field = "django.db.models.BigAutoField"
