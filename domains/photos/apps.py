from django.apps import AppConfig


class PhotosConfig(AppConfig):
    """Photos of one place and time become gatherings."""

    name = "tailrace.domains.photos"
    label = "tailrace_photos"
    default_auto_field = "django.db.models.BigAutoField"
