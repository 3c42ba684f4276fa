"""The settings of Tailrace's apps: `conf.JOBS_TIME_LIMIT`. On the platform they are Django settings
that `config/settings.py` reads from the environment. In another project they are keys of that
project's setting TAILRACE, a dict; a key that it lacks has the default."""

from collections.abc import Mapping
from typing import Any

from django.apps import apps
from django.conf import settings

from tailrace.environment.loading import Environment, settings_classes

PLATFORM = "tailrace.config"
"""The app that makes a project the platform."""


class _Conf:
    def __getattr__(self, name: str) -> Any:
        if on_platform():
            return getattr(settings, name)
        try:
            return project_settings().values[name]
        except KeyError:
            raise AttributeError(f"no app of Tailrace has a setting {name}") from None


conf = _Conf()


def on_platform() -> bool:
    """Whether this project is the platform, and not another project with apps of Tailrace."""
    return PLATFORM in settings.INSTALLED_APPS


def project_settings() -> Environment:
    """Return the settings of another project, read from its TAILRACE. The project's environment
    variables are its own, so they are not read."""
    global _read
    given = getattr(settings, "TAILRACE", {})
    if _read is None or _read[0] != given:
        names = [app.name for app in apps.app_configs.values() if app.name.startswith("tailrace.")]
        values = given if isinstance(given, Mapping) else {}
        _read = dict(values), Environment(settings_classes(names), values)
    return _read[1]


_read: tuple[dict[str, Any], Environment] | None = None
"""The value of TAILRACE that was read last, and its settings: tests may override it."""
