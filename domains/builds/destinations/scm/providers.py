"""Find the provider of a host."""

from functools import cache

from django.conf import settings

from tailrace.domains.builds.destinations.scm.base import Provider
from tailrace.environment.discovery import import_modules, subclasses


@cache
def providers() -> dict[str, Provider]:
    """Return the providers by name: subclasses of Provider in `destinations.scm` of any app."""
    import_modules("destinations.scm")
    return {cls.name: cls() for cls in sorted(subclasses(Provider), key=lambda cls: cls.name)}


def provider_of(host: str) -> Provider | None:
    """Return the provider of a host, from SCM_PROVIDERS or the well-known hosts, or None."""
    if host in settings.SCM_PROVIDERS:
        return providers().get(settings.SCM_PROVIDERS[host])
    return next((provider for provider in providers().values() if host in provider.hosts), None)
