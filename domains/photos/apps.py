from django.apps import AppConfig


class PhotosConfig(AppConfig):
    """Photos taken near each other, within minutes, form gatherings."""

    name = "tailrace.domains.photos"
    label = "tailrace_photos"
    default_auto_field = "django.db.models.BigAutoField"
