"""System checks of the settings for `manage.py check`, and of production with `--deploy`."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error, Warning, register

from tailrace.environment.folders import PACKAGE_DIR
from tailrace.environment.suggest import did_you_mean
from tailrace.net import tracing

DECLARE = ("handlers.py", "handlers", "event_types.py")
"""Files by which a folder is recognized as an app of Tailrace."""


@register("settings")
def check_environment(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    from tailrace.config.settings import env

    return [
        *(Error(str(problem), id="tailrace.E001") for problem in env.problems),
        *(
            Warning(f"{name}: no such setting{did_you_mean(name, env.names)}", id="tailrace.W001")
            for name in env.unknown()
        ),
    ]


@register("settings")
def check_installed_apps(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    return list(apps_not_installed(PACKAGE_DIR))


def apps_not_installed(base: Path) -> Iterator[CheckMessage]:
    """Yield a warning for each folder below `base`, or below its `domains`, that declares handlers
    or event types and is not in INSTALLED_APPS."""
    installed = {config.name for config in apps.get_app_configs()}
    for folder in sorted([*base.glob("*/"), *base.glob("domains/*/")]):
        name = ".".join(["tailrace", *folder.relative_to(base).parts])
        declares = [file for file in DECLARE if (folder / file).exists()]
        if declares and name not in installed:
            yield Warning(
                f"{(folder / declares[0]).resolve()} is not used: {name!r} is not an installed app",
                hint=f"add {name!r} to APPS in config/installed_apps.py",
                id="tailrace.W002",
            )


@register("settings")
def check_tracing(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    return list(tracing_problems(os.environ, tracing.is_installed))


def tracing_problems(
    variables: Mapping[str, str], is_installed: Callable[[], bool]
) -> Iterator[CheckMessage]:
    """Yield a warning for each reason why no spans are sent with these environment variables."""
    if not tracing.is_wanted(variables):
        return
    if not is_installed():
        yield Warning(
            f"{tracing.ENDPOINTS[0]}: OpenTelemetry is not installed, so no spans are sent",
            hint="install tailrace[tracing]",
            id="tailrace.W003",
        )
    protocol = "OTEL_EXPORTER_OTLP_PROTOCOL"
    if variables.get(protocol, tracing.PROTOCOL) != tracing.PROTOCOL:
        yield Warning(
            f"{protocol}: {variables[protocol]!r} is not supported",
            hint=f"spans are sent as {tracing.PROTOCOL}: use the receiver's port for it (4318)",
            id="tailrace.W004",
        )


@register("settings", deploy=True)
def check_insecure(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    from tailrace.config.settings import env

    return env.insecure()
