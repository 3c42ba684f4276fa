"""System checks of the build settings and event types."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from tailrace.domains.builds.destinations.base import Misconfigured, UnknownBus
from tailrace.domains.builds.destinations.connections import bus_class
from tailrace.domains.builds.destinations.scm.providers import provider_of, providers
from tailrace.domains.builds.event_types.catalogue import builds_types
from tailrace.environment.suggest import did_you_mean

MAX_NAME_LENGTH = 100


@register("builds")
def backend_names_are_valid(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Each backend's name is valid: it is part of the source of events, `obs:<name>:<epoch>`."""
    return [
        Error(
            f"OBS_BACKEND_URL: {name[:MAX_NAME_LENGTH]!r} is not a valid backend name",
            hint=f"use only letters, digits, - and _, at most {MAX_NAME_LENGTH} characters",
            id="tailrace_builds.E001",
        )
        for name in settings.OBS_BACKENDS
        if len(name) > MAX_NAME_LENGTH or not name.replace("-", "").replace("_", "").isalnum()
    ]


@register("builds")
def bus_source_is_no_destination(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """No bus is both source and destination: it would send each event in an endless loop."""
    source = _amqp_address(settings.BUS_SOURCE_URL)
    return [
        Error(
            f"BUS_SOURCE_URL: is the same bus as BUS_BACKENDS' {name}",
            hint="Tailrace would send the events from this bus back to it in an endless loop;"
            " use another vhost for one of them",
            id="tailrace_builds.E002",
        )
        for name, url in settings.BUS_BACKENDS.items()
        if source and _amqp_address(url) == source
    ]


@register("builds")
def hidden_events_have_readers(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Events from BUS_SOURCE_URL have readers. Without exactly one backend that has the metadata of
    their projects, these count as unknown, and therefore as hidden."""
    is_hidden = settings.OBS_UNKNOWN_PROJECTS != "public" and len(settings.OBS_BACKENDS) != 1
    warning = Warning(
        "OBS_UNKNOWN_PROJECTS: is `hidden`, so no user can read events from BUS_SOURCE_URL",
        hint="set OBS_UNKNOWN_PROJECTS=public if everybody may read the events on that bus",
        id="tailrace_builds.W004",
    )
    return [warning] if settings.BUS_SOURCE_URL and is_hidden else []


@register("builds")
def named_buses_exist(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Each name in BUS_TAKES_HIDDEN and BUS_METRICS is a bus in BUS_BACKENDS."""
    buses = settings.BUS_BACKENDS
    return [
        Error(
            f"{variable}: BUS_BACKENDS has no bus {name!r}{did_you_mean(name, buses)}",
            id="tailrace_builds.E005",
        )
        for variable in ("BUS_TAKES_HIDDEN", "BUS_METRICS")
        for name in getattr(settings, variable)
        if name not in buses
    ]


@register("builds")
def backends_get_no_metrics(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """No bus in BUS_METRICS is a build service's backend: its plugins accept only events."""
    return [
        Error(
            f"BUS_METRICS: {name!r} is an obs+http(s) backend, which accepts no metrics",
            id="tailrace_builds.E006",
        )
        for name in settings.BUS_METRICS
        if settings.BUS_BACKENDS.get(name, "").startswith("obs+")
    ]


@register("builds")
def type_names_are_unique(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Each raw type and each bus key belongs to one event type."""
    return [
        Error(f"{count} event types have the {attribute} {name!r}", id="tailrace_builds.E003")
        for attribute in ("raw_type", "bus_key")
        for name, count in Counter(getattr(type, attribute) for type in builds_types()).items()
        if name and count > 1
    ]


@register("settings")
def check_webhook_secrets(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """The signing keys of HTTP bus backends have the format of Standard Webhooks."""
    secrets = {f"BUS_SECRET_{name}": secret for name, secret in settings.BUS_SECRETS.items()}
    secrets["BUS_WEBHOOK_SECRET"] = settings.BUS_WEBHOOK_SECRET
    return [
        Error(f"{name}: does not start with whsec_", id="tailrace.E002")
        for name, secret in secrets.items()
        if secret and not secret.startswith("whsec_")
    ]


@register("builds")
def buses_are_usable(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Each bus in BUS_BACKENDS has a known scheme, and a valid URL and secret."""
    errors: list[CheckMessage] = []
    for name, url in settings.BUS_BACKENDS.items():
        try:
            bus_class(url)(name, url)
        except (UnknownBus, Misconfigured) as error:
            errors.append(Error(f"BUS_BACKENDS: {name}: {error}", id="tailrace_builds.E010"))
    return errors


@register("builds")
def scm_hosts_have_providers(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Each host in SCM_TOKENS has a known provider, and a token that is valid in an HTTP header."""
    return list(_scm_errors(", ".join(providers())))


def _scm_errors(known: str) -> Iterator[CheckMessage]:
    for host, name in settings.SCM_PROVIDERS.items():
        if name not in providers():
            text = f"{host} has the unknown provider {name!r}{did_you_mean(name, providers())}"
            hint = f"known providers: {known}"
            yield Error(f"SCM_PROVIDERS: {text}", hint=hint, id="tailrace_builds.E007")
    for host, token in settings.SCM_TOKENS.items():
        if host not in settings.SCM_PROVIDERS and provider_of(host) is None:
            text = f"SCM_PROVIDERS: has no provider for {host}, a host in SCM_TOKENS"
            hint = f"add {host}=gitea, or another provider: {known}"
            yield Error(text, hint=hint, id="tailrace_builds.E008")
        if not re.fullmatch(r"[!-~]+", token):
            text = f"the token of {host} contains characters that are not allowed in tokens"
            yield Error(f"SCM_TOKENS: {text}", id="tailrace_builds.E009")
    for host in settings.SCM_TAKES_HIDDEN:
        if host not in settings.SCM_TOKENS:
            text = f"SCM_TOKENS has no host {host!r}{did_you_mean(host, settings.SCM_TOKENS)}"
            yield Error(f"SCM_TAKES_HIDDEN: {text}", id="tailrace_builds.E011")


def _amqp_address(url: str) -> tuple[str, str, str] | None:
    """Return the host, port and vhost of an AMQP bus; None for any other bus."""
    parts = urlsplit(url)
    default_port = {"amqp": 5672, "amqps": 5671}.get(parts.scheme)
    try:
        port = parts.port or default_port
    except ValueError:
        return None
    address = (parts.hostname or "", str(port), parts.path.strip("/"))
    return address if default_port else None
