from django.apps import AppConfig


class BuildsConfig(AppConfig):
    """The build-service domain."""

    name = "domains.builds"
    label = "builds"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from domains.builds import changes  # noqa: F401  (listens to `published`)
