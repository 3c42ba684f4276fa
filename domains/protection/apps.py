from django.apps import AppConfig


class ProtectionConfig(AppConfig):
    """Identity protection by plan."""

    name = "tailrace.domains.protection"
    label = "tailrace_protection"
    default_auto_field = "django.db.models.BigAutoField"
