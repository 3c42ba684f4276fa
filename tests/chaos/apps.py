from django.apps import AppConfig


class ChaosConfig(AppConfig):
    """Event types and handlers of the run, and short leases for all handlers, so that a run takes
    minutes and not an hour."""

    name = "tests.chaos"
    label = "chaos"

    def ready(self) -> None:
        from jobs import registry

        for handler in registry.all_handlers().values():
            type(handler).claim_timeout = LEASE


LEASE = 5.0
"""Seconds until a job whose worker is silent is given to another."""
