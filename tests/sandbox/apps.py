from django.apps import AppConfig


class SandboxConfig(AppConfig):
    """Event types and handlers that only the tests use, seen by their worker processes too."""

    name = "tests.sandbox"
    label = "sandbox"
    default_auto_field = "django.db.models.BigAutoField"
