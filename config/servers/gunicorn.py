"""gunicorn's settings: `gunicorn --config config/servers/gunicorn.py config.wsgi`."""

import os
from typing import Any

from gunicorn.glogging import Logger

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from django.conf import settings

from config.monitoring import logs


class TailraceLogger(Logger):
    """Logs in the format of the other processes, without query strings."""

    def setup(self, cfg: Any) -> None:
        """Pass all records to the root logger."""
        super().setup(cfg)
        logs.configure(settings.LOGGING)
        for log in (self.error_log, self.access_log):
            log.handlers.clear()
            log.propagate = True

    def access(self, resp: Any, req: Any, environ: dict[str, Any], request_time: Any) -> None:
        """Log one line per request, except for the health page."""
        if environ.get("PATH_INFO") != "/healthz":
            super().access(resp, req, environ, request_time)


bind = f"{settings.WEB_HOST}:{settings.WEB_PORT}"
worker_class = "gthread"
workers = settings.WEB_PROCESSES
threads = settings.WEB_THREADS
timeout = 60
graceful_timeout = 10
logger_class = TailraceLogger
accesslog = "-"
access_log_format = "%(m)s %(U)s %(s)s %(b)sB %(L)ss"
control_socket_disable = True
