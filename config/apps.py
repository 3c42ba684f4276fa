"""The app of the platform."""

import gc

from django.apps import AppConfig


class TailraceConfig(AppConfig):
    name = "tailrace.config"
    label = "tailrace_config"
    verbose_name = "Tailrace"

    def ready(self) -> None:
        """Load the Celery application, checks and error reports, and tune the garbage collector."""
        from tailrace.config import celery  # noqa: F401  (the current app)
        from tailrace.config.monitoring import sentry
        from tailrace.config.startup import checks  # noqa: F401

        sentry.start()
        # Loaded objects live until the process ends: exclude them from garbage collection, so that
        # forked workers share their memory pages.
        gc.enable()
        gc.freeze()
