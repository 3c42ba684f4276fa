from pathlib import Path

from django.apps import AppConfig


class BuildsConfig(AppConfig):
    """Events of a build service, and the work that follows from them."""

    name = "tailrace.domains.builds"
    label = "tailrace_builds"
    path = str(Path(__file__).parent / "pages")  # of templates and static files
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from tailrace.domains.builds.handlers import changes  # noqa: F401  (receiver of `published`)
