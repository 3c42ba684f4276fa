from pathlib import Path

from django.apps import AppConfig


class TimelineConfig(AppConfig):
    """Location histories of users, from imported files and from their phones."""

    name = "tailrace.domains.timeline"
    label = "tailrace_timeline"
    path = str(Path(__file__).parent / "pages")  # of templates and static files
    default_auto_field = "django.db.models.BigAutoField"
