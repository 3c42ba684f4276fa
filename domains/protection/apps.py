from django.apps import AppConfig


class ProtectionConfig(AppConfig):
    """Identity protection by plan."""

    name = "domains.protection"
    label = "protection"
    default_auto_field = "django.db.models.BigAutoField"
