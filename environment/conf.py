"""The settings of Tailrace's apps: `conf.JOBS_TIME_LIMIT`. On the platform they are Django settings
that `config/settings.py` reads from the environment. In another project they are keys of that
project's setting TAILRACE, a dict; a key that it lacks has the default."""

import sys
from collections.abc import Mapping
from typing import Any

from django.apps import apps
from django.conf import settings

from tailrace.environment.loading import Environment, settings_classes

PLATFORM = "tailrace.config"
"""The app that makes a project the platform."""


class _OfProject:
    def __getattr__(self, name: str) -> Any:
        try:
            return project_settings().values[name]
        except KeyError:
            raise AttributeError(f"no app of Tailrace has a setting {name}") from None


def on_platform() -> bool:
    """Whether this project is the platform, and not another project with apps of Tailrace."""
    return PLATFORM in settings.INSTALLED_APPS


conf: Any = settings if on_platform() else _OfProject()


def project_settings() -> Environment:
    """Return the settings of another project, read from its TAILRACE. The project's environment
    variables are its own, so they are not read. In its tests, wake-ups are off by default: no
    worker waits for them, and no thread keeps a connection to the test database."""
    global _read
    given = getattr(settings, "TAILRACE", {})
    values = dict(given) if isinstance(given, Mapping) else {}
    if _in_tests():
        values.setdefault("JOBS_WAKE", "off")
    if _read is None or _read[0] != values:
        names = [app.name for app in apps.app_configs.values() if app.name.startswith("tailrace.")]
        _read = values, Environment(settings_classes(names), values)
    return _read[1]


def _in_tests() -> bool:
    """Whether Django's test runner or pytest-django has set up its environment."""
    utils = sys.modules.get("django.test.utils")
    return utils is not None and hasattr(utils._TestState, "saved_data")


_read: tuple[dict[str, Any], Environment] | None = None
"""The values that were read last, and their settings: tests may override TAILRACE."""
