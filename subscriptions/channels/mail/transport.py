"""Send a mail through the mail server, and turn its errors into outcomes of the job.

The connection stays open for the next mails, so a batch uses one connection.
"""

import contextlib
import smtplib
import threading
import time
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage, get_connection

from jobs.destinations import breaker
from jobs.destinations.delivery import with_jitter
from jobs.outcomes import Permanent, Retry, Snooze

IDLE_SECONDS = 5
"""After so long without use, a connection is closed and opened again."""
BREAKER = "subscriptions.mail"
"""The breaker of the mail server, which everything that sends mail shares."""


@dataclass(slots=True)
class _Connection:
    backend: Any
    settings: tuple[Any, ...]
    used_at: float


_this_thread = threading.local()


def send(message: EmailMessage) -> None:
    """Return when the server has accepted the message (250); else raise Retry or Permanent.

    While the server is unavailable, one mail at a time is tried; the others raise Snooze, which
    charges no attempt.
    """
    state = breaker.check(BREAKER)
    if state.wait > 0:
        raise Snooze("the mail server is unavailable", seconds=with_jitter(state.wait))
    backend = _connection(probe=state.probe)
    if state.failures:
        breaker.record_success(BREAKER)
    try:
        backend.send_messages([message])
    except (smtplib.SMTPException, OSError) as error:
        if not _can_continue(error):
            close()
        raise _outcome(error) from error
    except ValueError as error:  # Django or smtplib cannot encode it
        raise Permanent(f"the message cannot be sent: {error}") from error
    except BaseException:
        close()
        raise
    _this_thread.connection.used_at = time.monotonic()


def close() -> None:
    """Close this thread's connection, if there is one."""
    connection: _Connection | None = getattr(_this_thread, "connection", None)
    _this_thread.connection = None
    if connection is not None:
        with contextlib.suppress(smtplib.SMTPException, OSError):  # it is not used again anyway
            connection.backend.close()


def _connection(*, probe: bool) -> Any:
    mail_settings = _mail_settings()
    connection: _Connection | None = getattr(_this_thread, "connection", None)
    if (
        connection is not None
        and connection.settings == mail_settings
        and time.monotonic() - connection.used_at < IDLE_SECONDS
    ):
        return connection.backend
    close()
    backend = get_connection(fail_silently=False)
    try:
        backend.open()
    except (smtplib.SMTPException, OSError) as error:
        # The server, its greeting or the login failed: not the message.
        reason = f"the mail server is unavailable: {_reply(error)[1]}"
        wait = breaker.record_failure(BREAKER, reason, at_once=True, probe=probe)
        raise Snooze(reason, seconds=with_jitter(wait)) from error
    _this_thread.connection = _Connection(backend, mail_settings, time.monotonic())
    return backend


def _mail_settings() -> tuple[Any, ...]:
    return tuple(
        getattr(settings, f"EMAIL_{name}", None)
        for name in ("BACKEND", "HOST", "PORT", "HOST_USER", "USE_TLS", "USE_SSL", "FILE_PATH")
    )


def _can_continue(error: Exception) -> bool:
    """Return whether the server rejected this message but would accept another."""
    return (
        isinstance(error, smtplib.SMTPRecipientsRefused | smtplib.SMTPResponseException)
        and _reply(error)[0] != 421
    )


def _outcome(error: Exception) -> Retry | Permanent:
    code, text = _reply(error)
    if isinstance(error, smtplib.SMTPNotSupportedError) or 500 <= code < 600:
        return Permanent(f"the mail server rejected it: {text}")
    return Retry(f"the mail server did not accept it: {text}")


def _reply(error: Exception) -> tuple[int, str]:
    """Return the code of the server's reply, 0 if there is none, and the error in words."""
    text: str | bytes
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        code, text = next(iter(error.recipients.values()))
    elif isinstance(error, smtplib.SMTPResponseException):
        code, text = error.smtp_code, error.smtp_error
    else:
        return 0, str(error) or type(error).__name__
    return int(code), f"{code} {text.decode(errors='replace') if isinstance(text, bytes) else text}"
