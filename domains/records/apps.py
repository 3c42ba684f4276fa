from django.apps import AppConfig


class RecordsConfig(AppConfig):
    """Records: deposited or harvested, published, and indexed for search."""

    name = "tailrace.domains.records"
    label = "tailrace_records"
    default_auto_field = "django.db.models.BigAutoField"
