from django.apps import AppConfig


class ChaosConfig(AppConfig):
    """Event types and handlers of the run, and short leases for all handlers and short waits
    between attempts of imports, so that a run takes minutes and not an hour."""

    name = "tests.chaos"
    label = "chaos"

    def ready(self) -> None:
        from tailrace.jobs.engine import registry
        from tailrace.jobs.handler import Backoff

        for handler in registry.all_handlers().values():
            type(handler).claim_timeout = LEASE
            if handler.name.startswith("timeline."):
                type(handler).backoff = Backoff(1, 2)


LEASE = 5.0
"""Seconds until a job whose worker is silent is given to another."""
