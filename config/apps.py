"""The app that holds everything together."""

import gc

from django.apps import AppConfig
from django.db.backends.signals import connection_created


class TailraceConfig(AppConfig):
    """Brings the checks, the commands, the Celery application and error reports."""

    name = "tailrace.config"
    label = "tailrace_config"
    verbose_name = "Tailrace"

    def ready(self) -> None:
        """Make our Celery application the default one of each process."""
        from tailrace.config import celery, checks  # noqa: F401
        from tailrace.config.monitoring import sentry
        from tailrace.db.server import refuse_old

        connection_created.connect(refuse_old, dispatch_uid="db.refuse_old")
        sentry.start()
        # What is loaded stays: it is never looked at again, and workers share its pages.
        gc.enable()
        gc.freeze()
