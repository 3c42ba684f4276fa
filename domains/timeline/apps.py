from django.apps import AppConfig


class TimelineConfig(AppConfig):
    """Where a person was, from imported files and from their phone."""

    name = "domains.timeline"
    label = "timeline"
    default_auto_field = "django.db.models.BigAutoField"
