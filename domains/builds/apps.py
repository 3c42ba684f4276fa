from django.apps import AppConfig


class BuildsConfig(AppConfig):
    """builds: the build-service domain."""

    name = "domains.builds"
    label = "builds"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from domains.builds import checks  # noqa: F401  (registers the system checks)
