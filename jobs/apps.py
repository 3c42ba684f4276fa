from pathlib import Path
from types import ModuleType
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate
from django.template.backends.django import DjangoTemplates
from django.utils.module_loading import import_string

from tailrace.db.engine_database import add_engine_database
from tailrace.db.server import refuse_old
from tailrace.environment.conf import on_platform
from tailrace.environment.discovery import import_modules

TEMPLATE_TAGS = {
    "tailrace_formatting": "tailrace.jobs.platform.pages.templatetags.tailrace_formatting"
}


class JobsConfig(AppConfig):
    """Jobs, the work that events cause. Imports `events` and no domain."""

    name = "tailrace.jobs"
    label = "tailrace_jobs"
    verbose_name = "Tailrace jobs"
    path = str(Path(__file__).parent / "platform" / "pages")  # of templates and static files
    default_auto_field = "django.db.models.BigAutoField"

    def __init__(self, app_name: str, app_module: ModuleType | None) -> None:
        """Add the engine's database connection, before any module can open one."""
        super().__init__(app_name, app_module)
        add_engine_database()

    def import_models(self) -> None:
        """Raises ImproperlyConfigured if `tailrace.events`, which jobs refer to, is missing."""
        if not apps.is_installed("tailrace.events"):
            raise ImproperlyConfigured(
                "INSTALLED_APPS contains 'tailrace.jobs' without 'tailrace.events'; add both"
            )
        super().import_models()
        add_template_tags()

    def ready(self) -> None:
        from django.contrib.admin.apps import AdminConfig

        from tailrace.jobs.engine import registry
        from tailrace.jobs.engine.inserting import fan_out  # noqa: F401  (listens to `published`)
        from tailrace.jobs.engine.maintenance import sync_declared
        from tailrace.jobs.runtime.logs import use_logging

        if not on_platform():
            use_logging()
        connection_created.connect(refuse_old, dispatch_uid="jobs.refuse_old")
        registry.discover()
        if getattr(settings, "TASKS", None):
            from tailrace.jobs.frameworks.django_tasks import discovery

            discovery.discover()
        from tailrace.jobs.frameworks.celery_tasks import discovery as celery_discovery

        celery_discovery.discover()
        import_modules("invariants")
        import_modules("retention")
        if any(isinstance(app, AdminConfig) for app in apps.get_app_configs()):
            from tailrace.jobs.platform import admin  # noqa: F401  (Django looks elsewhere)
        # Before the queues without a handler are retired.
        post_migrate.connect(celery_discovery.find_tasks, sender=self, dispatch_uid="jobs.tasks")
        post_migrate.connect(sync_declared.sync, sender=self, dispatch_uid="jobs.sync")


def add_template_tags() -> None:
    """Add the template tags of these pages to each of the project's template engines. Django itself
    finds only modules in a folder `templatetags` of an app."""
    engines: list[dict[str, Any]] = list(settings.TEMPLATES)
    for engine in engines:
        if issubclass(import_string(engine["BACKEND"]), DjangoTemplates):
            options = engine.setdefault("OPTIONS", {})
            options["libraries"] = TEMPLATE_TAGS | options.get("libraries", {})
