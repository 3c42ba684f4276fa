"""Configure logging by structlog: one line per record, as JSON or as readable text, also for
records of the standard library (Django, Celery, gunicorn). Lines contain the variables that are
bound to structlog's context: event_id, job_id, claim_no, queue. Requests are logged with their
routes, because paths contain secrets."""

import logging
import logging.config
import sys
from typing import Any
from urllib.parse import unquote

import structlog
from structlog.typing import EventDict, Processor

from tailrace.config.monitoring.routes import route_of, without_path
from tailrace.jobs.runtime.logs import mask_secrets

# Loggers that log too much or log whole URLs.
QUIET = {
    "celery.app.trace": "WARNING",
    "celery.beat": "WARNING",
    "celery.worker.strategy": "WARNING",
    "django.server": "WARNING",
    "httpcore": "WARNING",
    "httpx": "WARNING",
    # RabbitMQ: one warning per queue about ETA tasks, which Tailrace never sends.
    "kombu.transport.native_delayed_delivery": "ERROR",
}


def configure(settings: dict[str, Any]) -> None:
    """Configure logging for this process by settings.LOGGING: `style` is json or console, `level`
    the lowest level to log."""
    structlog.configure(
        processors=_PROCESSORS,
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "line": {
                    "()": structlog.stdlib.ProcessorFormatter,
                    "processors": [
                        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                        _renderer(settings["style"]),
                    ],
                    "foreign_pre_chain": [structlog.stdlib.ExtraAdder(), *_SHARED],
                }
            },
            "filters": {"routes": {"()": RouteOfAccess}},
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
            "root": {"handlers": ["stderr"], "level": settings["level"]},
            "loggers": {
                # Without the handlers that Django and uvicorn have already added.
                name: {"handlers": [], "level": level, "propagate": True, "filters": filters}
                for name, level, filters in (
                    ("django", "NOTSET", []),
                    ("uvicorn.access", "NOTSET", ["routes"]),
                    *((name, level, []) for name, level in QUIET.items()),
                )
            },
        }
    )


class RouteOfAccess(logging.Filter):
    """Replaces the path in a record of uvicorn's access log with its route."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple) and len(record.args) == 5:
            client, method, path, *rest = record.args
            route = route_of(unquote(str(path).partition("?")[0]))
            record.args = (client, method, route, *rest)
        return True


def hide_paths(logger: Any, name: str, event: EventDict) -> EventDict:
    """Replace the request in a record of Django with its route, and the path in the message."""
    request = event.pop("request", None)
    if path := getattr(request, "path", ""):
        event["route"] = route_of(path)
        for key in ("event", "exception"):
            if isinstance(event.get(key), str):
                event[key] = without_path(event[key], path)
    return event


_SHARED: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
    structlog.processors.format_exc_info,
    hide_paths,
    mask_secrets,
]
_PROCESSORS: list[Processor] = [
    structlog.stdlib.filter_by_level,
    structlog.stdlib.PositionalArgumentsFormatter(),
    *_SHARED,
    structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
]
"""The same list each time: loggers that were used before refer to it."""


def _renderer(style: str) -> Processor:
    if style == "json":
        return structlog.processors.JSONRenderer(default=str, ensure_ascii=False)
    return structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(),
        exception_formatter=structlog.dev.plain_traceback,  # the rich one shows local variables
    )
