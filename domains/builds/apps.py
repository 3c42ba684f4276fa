from django.apps import AppConfig


class BuildsConfig(AppConfig):
    """The build-service domain."""

    name = "domains.builds"
    label = "builds"
    default_auto_field = "django.db.models.BigAutoField"
