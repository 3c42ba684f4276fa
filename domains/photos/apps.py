from pathlib import Path

from django.apps import AppConfig


class PhotosConfig(AppConfig):
    """Photos taken near each other, within minutes, form gatherings."""

    name = "tailrace.domains.photos"
    label = "tailrace_photos"
    path = str(Path(__file__).parent / "pages")  # of templates and static files
    default_auto_field = "django.db.models.BigAutoField"
