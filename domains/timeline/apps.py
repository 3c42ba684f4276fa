from django.apps import AppConfig


class TimelineConfig(AppConfig):
    """Location histories of users, from imported files and from their phones."""

    name = "tailrace.domains.timeline"
    label = "tailrace_timeline"
    default_auto_field = "django.db.models.BigAutoField"
