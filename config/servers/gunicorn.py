"""gunicorn's settings:
`gunicorn --config config/servers/gunicorn.py tailrace.config.servers.wsgi`."""

import os
from typing import Any

from gunicorn.glogging import Logger

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tailrace.config.settings")

from tailrace.config.startup import boot

boot.start()
boot.check_server()

from django.conf import settings

from tailrace.config.monitoring import liveness, logs
from tailrace.config.monitoring.routes import route_of
from tailrace.config.servers.worker import Worker


class TailraceLogger(Logger):
    """Logs in the same format as the other processes, with routes instead of URLs."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        logs.configure(settings.LOGGING)
        for log in (self.error_log, self.access_log):
            log.handlers.clear()
            log.propagate = True

    def access(self, resp: Any, req: Any, environ: dict[str, Any], request_time: Any) -> None:
        if environ.get("PATH_INFO") not in ("/healthz", "/readyz", liveness.PATH):
            super().access(resp, req, environ, request_time)

    def atoms(
        self, resp: Any, req: Any, environ: dict[str, Any], request_time: Any
    ) -> dict[str, Any]:
        """Return the values for `access_log_format`, with the route as `U`."""
        atoms: dict[str, Any] = super().atoms(resp, req, environ, request_time)
        return atoms | {"U": route_of(environ.get("PATH_INFO") or req.path)}

    def warning(self, msg: str, *args: Any, **kwargs: Any) -> None:
        """Log a warning, without the quoted line if it is about an invalid request."""
        quotes_request = msg.startswith("Invalid request from ")
        super().warning(msg.partition(": ")[0] if quotes_request else msg, *args, **kwargs)


bind = f"{settings.WEB_HOST}:{settings.WEB_PORT}"
worker_class = Worker
http_parser = "python"  # the only parser that can read from ArrivedRequest
worker_connections = 400
workers = settings.WEB_PROCESSES
threads = settings.WEB_THREADS
forwarded_allow_ips = ",".join(settings.WEB_PROXIES)
timeout = 60
graceful_timeout = 10
logger_class = TailraceLogger
accesslog = "-"
access_log_format = "%(m)s %(U)s %(s)s %(b)sB %(L)ss"
control_socket_disable = True
