"""The admin, as an app whose parts are found when the URLs are read: 30 MB with all pages, which
workers, beat and commands do without."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.contrib.admin import autodiscover
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.core import checks


class AdminConfig(SimpleAdminConfig):
    """The admin with the looks of unfold."""

    default_site = "unfold.sites.UnfoldAdminSite"

    def ready(self) -> None:
        checks.register(check_dependencies, checks.Tags.admin)
        checks.register(_check_admin, checks.Tags.admin)


def _check_admin(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Sequence[checks.CheckMessage]:
    autodiscover()
    return check_admin_app(app_configs, **kwargs)
