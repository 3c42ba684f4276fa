from pathlib import Path

from django.apps import AppConfig
from django.db.models.signals import post_migrate

from tailrace.environment.discovery import import_modules


class SubscriptionsConfig(AppConfig):
    """Subscriptions and plans of users. Imports events and jobs, but no domain."""

    name = "tailrace.subscriptions"
    label = "tailrace_subscriptions"
    path = str(Path(__file__).parent / "pages")  # where Django looks for templates and static
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from tailrace.subscriptions.notifications.preferences import defaults
        from tailrace.subscriptions.plans import schedules  # noqa: F401 its receiver is connected

        import_modules("roles")
        post_migrate.connect(
            defaults.create_missing, sender=self, dispatch_uid="subscriptions.defaults"
        )
