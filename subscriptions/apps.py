from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules


class SubscriptionsConfig(AppConfig):
    """Subscriptions: who hears what. Knows events and jobs, and nothing of the domains."""

    name = "subscriptions"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from jobs import prune
        from subscriptions import checks, defaults  # noqa: F401  (registers the system checks)

        for table in ("notification", "inboxitem", "feeditem", "digestitem"):
            prune.keep_events(
                f"subscriptions.{table}",
                f"EXISTS (SELECT 1 FROM subscriptions_{table} x WHERE x.event_id = old.id)",
            )
        autodiscover_modules("roles")
        post_migrate.connect(defaults.sync, sender=self, dispatch_uid="subscriptions.defaults")
