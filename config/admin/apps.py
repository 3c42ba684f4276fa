"""The admin app. Its pages are loaded with the URLs, since they take 30 MB that workers, beat and
commands do not need."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.core import checks

from tailrace.environment.discovery import import_modules


class AdminConfig(SimpleAdminConfig):
    default_site = "unfold.sites.UnfoldAdminSite"

    def ready(self) -> None:
        checks.register(check_dependencies, checks.Tags.admin)
        checks.register(_check_admin, checks.Tags.admin)


def _check_admin(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Sequence[checks.CheckMessage]:
    import_modules("admin")
    return check_admin_app(app_configs, **kwargs)
