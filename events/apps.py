from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class EventsConfig(AppConfig):
    """Events: what happened. Knows nothing of jobs."""

    name = "events"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from events import checks  # noqa: F401  (registers the system checks)

        autodiscover_modules("event_types")
