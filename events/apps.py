from django.apps import AppConfig


class EventsConfig(AppConfig):
    """The app of events: facts that were recorded. It does not depend on jobs."""

    name = "tailrace.events"
    label = "tailrace_events"
    verbose_name = "Tailrace events"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from tailrace.environment.discovery import import_modules

        import_modules("checks")
        import_modules("event_types")
