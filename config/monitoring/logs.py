"""Configure logging by structlog: one line per record, as JSON or as text to read.

Records of the standard library (Django, Celery, gunicorn) have the same format. Each line contains
what is bound to structlog's context: event_id, job_id, claim_no, queue.
"""

import logging
import logging.config
import re
import sys
from typing import Any

import structlog
from structlog.typing import EventDict, Processor

PASSWORD = re.compile(r"(\w://[^/\s:@]*:)[^/\s@]+@")

# Libraries that log too much, or whole URLs.
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
    """Set up all logging of this process.

    `settings` is settings.LOGGING: `style` is json or console, `level` the lowest level.
    """
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        mask_passwords,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *before,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
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
                    "foreign_pre_chain": [structlog.stdlib.ExtraAdder(), *before],
                }
            },
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
            "root": {"handlers": ["stderr"], "level": settings["level"]},
            "loggers": {
                # Django has added its own handlers to these before this function runs.
                "django": {"handlers": [], "level": "NOTSET", "propagate": True},
                **{
                    name: {"handlers": [], "level": level, "propagate": True}
                    for name, level in QUIET.items()
                },
            },
        }
    )


def mask_passwords(logger: Any, name: str, event: EventDict) -> EventDict:
    """Replace the password in any URL of any field by ***."""
    for key, value in event.items():
        if isinstance(value, str) and "://" in value:
            event[key] = PASSWORD.sub(r"\1***@", value)
    return event


def _renderer(style: str) -> Processor:
    if style == "json":
        return structlog.processors.JSONRenderer(default=str, ensure_ascii=False)
    return structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(),
        exception_formatter=structlog.dev.plain_traceback,  # the rich one shows local variables
    )
