from pathlib import Path

from django.apps import AppConfig


class RecordsConfig(AppConfig):
    """Records: deposited or harvested, published, and indexed for search."""

    name = "tailrace.domains.records"
    label = "tailrace_records"
    path = str(Path(__file__).parent / "pages")  # of templates and static files
    default_auto_field = "django.db.models.BigAutoField"
