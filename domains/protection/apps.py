from pathlib import Path

from django.apps import AppConfig


class ProtectionConfig(AppConfig):
    """Identity protection by plan."""

    name = "tailrace.domains.protection"
    label = "tailrace_protection"
    path = str(Path(__file__).parent / "pages")  # of templates and static files
    default_auto_field = "django.db.models.BigAutoField"
