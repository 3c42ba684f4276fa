import os

from django.apps import AppConfig


class ChaosConfig(AppConfig):
    """Shortens the leases by CHAOS_LEASE_SECONDS, so that a run takes minutes and not an hour."""

    name = "tests.chaos"
    label = "chaos"

    def ready(self) -> None:
        from jobs import registry

        if seconds := os.environ.get("CHAOS_LEASE_SECONDS"):
            for handler in registry.everything().values():
                type(handler).claim_timeout = float(seconds)
