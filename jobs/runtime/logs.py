"""Log lines in a project that adds these apps: they go to Python's logging, which that project
configures. The platform has its own (`config/monitoring/logs.py`)."""

import re
from typing import Any

import structlog
from structlog.typing import EventDict

from tailrace.net.url_secrets import without_url_secrets

TOKEN = re.compile(
    r"((?:tr_|whsec_)[\w+/=-]{16,}|\b[0-9a-z]{6,7}-[0-9a-f]{32}\b)|[\w-]{40,}", re.ASCII
)
"""In the group: API tokens, signing keys and tokens of password resets. Otherwise a long word: with
small and capital letters it is the token of a feed or the signature of a link."""
_as_text = structlog.processors.LogfmtRenderer(key_order=["event"], drop_missing=True)


def use_logging() -> None:
    """Send lines to the loggers of Python's logging, unless the project has configured structlog.
    By default, structlog prints tracebacks with their local variables, which may be secrets."""
    if not structlog.is_configured():
        structlog.configure(
            processors=[
                structlog.stdlib.filter_by_level,
                structlog.contextvars.merge_contextvars,
                mask_secrets,
                _arguments,
            ],
            wrapper_class=structlog.stdlib.BoundLogger,
            logger_factory=structlog.stdlib.LoggerFactory(),
            cache_logger_on_first_use=True,
        )


def mask_secrets(logger: Any, name: str, event: EventDict) -> EventDict:
    """Replace the secrets in URLs and the tokens in all fields with ***."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = without_secrets(value)
    return event


def without_secrets(text: str) -> str:
    """Return the text with *** instead of secrets in URLs and of tokens."""
    return TOKEN.sub(_masked, without_url_secrets(text))


def _masked(match: re.Match[str]) -> str:
    word = match[0]
    return word if not match[1] and word in (word.lower(), word.upper()) else "***"


def _arguments(logger: Any, name: str, event: EventDict) -> tuple[tuple[str], dict[str, Any]]:
    """Return the arguments of the call of the logger: one line, `event=wake.not_sent queue=a.b`."""
    exc_info = event.pop("exc_info", None)
    # A value is one word or in quotes: logfmt has no nested values and no line breaks.
    flat = {key: value if isinstance(value, int) else str(value) for key, value in event.items()}
    return (_as_text(logger, name, flat),), {"exc_info": exc_info}
