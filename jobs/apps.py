from pathlib import Path

from django.apps import AppConfig, apps
from django.conf import settings
from django.db.models.signals import post_migrate

from tailrace.environment.discovery import import_modules


class JobsConfig(AppConfig):
    """Jobs, the work that events cause. Imports `events` and no domain."""

    name = "tailrace.jobs"
    label = "tailrace_jobs"
    path = str(Path(__file__).parent / "platform" / "pages")  # of templates and static files
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django.contrib.admin.apps import AdminConfig

        from tailrace.jobs.engine import registry
        from tailrace.jobs.engine.inserting import fan_out  # noqa: F401  (listens to `published`)
        from tailrace.jobs.maintenance import sync_declared

        registry.discover()
        if getattr(settings, "TASKS", None):
            from tailrace.jobs.django_tasks import discovery

            discovery.discover()
        import_modules("invariants")
        import_modules("retention")
        if any(isinstance(app, AdminConfig) for app in apps.get_app_configs()):
            from tailrace.jobs.platform import admin  # noqa: F401  (Django looks elsewhere)
        post_migrate.connect(sync_declared.sync, sender=self, dispatch_uid="jobs.sync")
