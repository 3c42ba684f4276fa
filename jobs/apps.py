from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.module_loading import autodiscover_modules


class JobsConfig(AppConfig):
    """Jobs: what is owed because of events. Knows events, and nothing of the domains."""

    name = "jobs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from jobs import checks, fan_out, registry, sync  # noqa: F401  (checks, fan_out: register)

        registry.discover()
        autodiscover_modules("invariants")
        autodiscover_modules("panels")
        post_migrate.connect(sync.sync, sender=self, dispatch_uid="jobs.sync")
