"""outbox: hand one mail to the mail server, and say what its answer means.

The connection stays open for the next mail of the burst, so a batch is one connection.
"""

import contextlib
import smtplib
import threading
import time
from dataclasses import dataclass
from random import uniform
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage, get_connection

from jobs import breaker
from jobs.outcomes import Permanent, Retry, Snooze

IDLE_SECONDS = 5
"""A connection that was not used for longer is not trusted any more."""
SPREAD = 1.5
"""What waits for the server comes back within the wait times this, not all at one moment."""


@dataclass(slots=True)
class _Open:
    backend: Any
    key: tuple[Any, ...]
    used_at: float


_this_thread = threading.local()


BREAKER = "subscriptions.mail"
"""The breaker of the mail server: all that is mailed stands before the same door."""


def send(message: EmailMessage) -> None:
    """Return when the server has taken the message (its 250); else raise Retry or Permanent.

    While it is away, one mail at a time tries; the others raise Snooze, which costs no attempt.
    """
    gate = breaker.gate(BREAKER)
    if gate.wait > 0:
        raise Snooze("the mail server is away", seconds=_spread(gate.wait))
    backend = _connection()
    if gate.failures:
        breaker.succeeded(BREAKER)
    try:
        backend.send_messages([message])
    except (smtplib.SMTPException, OSError) as error:
        if not _still_talks(error):
            close()
        raise _judge(error) from error
    except ValueError as error:  # what Django or smtplib cannot put into a message
        raise Permanent(f"not a message that can be sent: {error}") from error
    except BaseException:
        close()
        raise
    _this_thread.open.used_at = time.monotonic()


def close() -> None:
    """Close this thread's connection, if there is one."""
    found: _Open | None = getattr(_this_thread, "open", None)
    _this_thread.open = None
    if found is not None:
        with contextlib.suppress(smtplib.SMTPException, OSError):  # it is given up either way
            found.backend.close()


def _connection() -> Any:
    key = _settings()
    found: _Open | None = getattr(_this_thread, "open", None)
    if found is not None and found.key == key and time.monotonic() - found.used_at < IDLE_SECONDS:
        return found.backend
    close()
    backend = get_connection(fail_silently=False)
    try:
        backend.open()
    except (smtplib.SMTPException, OSError) as error:
        # The server, its greeting or the login: no fault of the message.
        why = f"the mail server is away: {_words(error)}"
        wait = breaker.failed(BREAKER, why, at_once=True)
        raise Snooze(why, seconds=_spread(wait)) from error
    _this_thread.open = _Open(backend, key, time.monotonic())
    return backend


def _spread(seconds: float) -> float:
    return seconds * uniform(1, SPREAD)  # noqa: S311


def _settings() -> tuple[Any, ...]:
    return tuple(
        getattr(settings, f"EMAIL_{name}", None)
        for name in ("BACKEND", "HOST", "PORT", "HOST_USER", "USE_TLS", "USE_SSL", "FILE_PATH")
    )


def _still_talks(error: Exception) -> bool:
    """Say whether the server refused this message but would take another."""
    return (
        isinstance(error, smtplib.SMTPRecipientsRefused | smtplib.SMTPResponseException)
        and _code(error) != 421
    )


def _judge(error: Exception) -> Retry | Permanent:
    code = _code(error)
    if isinstance(error, smtplib.SMTPNotSupportedError) or 500 <= code < 600:
        return Permanent(f"the mail server refused: {_words(error)}")
    return Retry(f"the mail server did not take it: {_words(error)}")


def _code(error: Exception) -> int:
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return int(next(iter(error.recipients.values()))[0])
    return int(error.smtp_code) if isinstance(error, smtplib.SMTPResponseException) else 0


def _words(error: Exception) -> str:
    said: str | bytes
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        code, said = next(iter(error.recipients.values()))
    elif isinstance(error, smtplib.SMTPResponseException):
        code, said = error.smtp_code, error.smtp_error
    else:
        return str(error) or type(error).__name__
    return f"{code} {said.decode(errors='replace') if isinstance(said, bytes) else said}"
