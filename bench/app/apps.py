from django.apps import AppConfig


class BenchConfig(AppConfig):
    """An event with four jobs, and handlers whose effects can be counted."""

    name = "bench.app"
    label = "bench"
    default_auto_field = "django.db.models.BigAutoField"
