"""A mail server. A process has one connection to it, in a thread that sends one mail at a time."""

import asyncio
import contextlib
import math
import queue
import smtplib
import socket
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from django.core.mail import EmailMessage, get_connection

from tailrace.jobs.destinations.delivery import DeliveryResult, DeliveryStatus

IDLE_SECONDS = 5
"""An unused connection is closed after this time."""
LONGEST_WAIT = 20.0
"""Seconds for which a mail may wait for its server; then NOT_TRIED is returned."""


class MailServer:
    """One mail server; `options` are arguments of Django's `get_connection`."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self.name, self.options = name, options
        self.is_closed = False
        self._queue: queue.SimpleQueue[tuple[float, EmailMessage, Future[DeliveryResult]] | None]
        self._queue = queue.SimpleQueue()
        self._backend: Any = None
        self._away_at = 0.0
        """Mails that were enqueued before this moment are not sent."""
        self._thread = threading.Thread(target=self._run, name=f"mail {name}", daemon=True)
        self._thread.start()

    def waiting(self) -> int:
        """Return the approximate number of waiting mails, without the one being sent."""
        return self._queue.qsize()

    async def send(self, message: EmailMessage) -> DeliveryResult:
        """Send the message and return the result; NOT_TRIED after LONGEST_WAIT in the queue. If the
        caller is cancelled, the mail is not sent, unless the server already has all of it."""
        future: Future[DeliveryResult] = Future()
        self._queue.put((time.monotonic(), message, future))
        answer = asyncio.wrap_future(future)
        try:
            await asyncio.wait([answer], timeout=LONGEST_WAIT)
            if future.cancel():  # the thread has not begun to send it
                return self._result(DeliveryStatus.NOT_TRIED, "is slow")
            return await answer
        except asyncio.CancelledError:
            if not future.cancel() and not future.done():
                self._hang_up()
            raise

    def close(self) -> None:
        """Send the waiting mails, close the connection, and wait until the thread has ended."""
        self.is_closed = True
        self._queue.put(None)
        self._thread.join()

    def _hang_up(self) -> None:
        """Close the connection while a mail is being sent; waiting mails get NOT_TRIED."""
        self.is_closed, self._away_at = True, math.inf
        self._queue.put(None)
        # Not SSLSocket.shutdown, since two threads must not use an SSLSocket.
        with contextlib.suppress(AttributeError, OSError):
            socket.socket.shutdown(self._backend.connection.sock, socket.SHUT_RDWR)

    # --- the thread ---

    def _run(self) -> None:
        while True:
            try:
                next_mail = self._queue.get(timeout=IDLE_SECONDS if self._backend else None)
            except queue.Empty:
                self._disconnect()
                continue
            if next_mail is None:
                self._disconnect()
                return
            put_at, message, future = next_mail
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(self._send(message, put_at))
            except BaseException as error:
                self._disconnect()
                future.set_exception(error)

    def _send(self, message: EmailMessage, put_at: float) -> DeliveryResult:
        try:
            if put_at > self._away_at:
                self._connect()
        except (smtplib.SMTPException, OSError) as error:
            # The connection, the greeting or the login failed, not the message.
            self._disconnect()
            self._away_at = max(self._away_at, time.monotonic())
            return self._result(DeliveryStatus.UNAVAILABLE, f"is unavailable: {_reply(error)[1]}")
        if put_at <= self._away_at:
            return self._result(DeliveryStatus.NOT_TRIED, "is unavailable")
        try:
            self._backend.send_messages([message])
        except (smtplib.SMTPException, OSError) as error:
            if not _can_continue(error):
                self._disconnect()
            return self._refusal(error)
        except ValueError as error:  # Django or smtplib cannot encode the message
            return DeliveryResult(DeliveryStatus.REJECTED, f"the message cannot be sent: {error}")
        result = {"message_id": message.extra_headers["Message-ID"], "server": self.name}
        return DeliveryResult(DeliveryStatus.SENT, result=result)

    def _connect(self) -> None:
        if self._backend is None:
            self._backend = get_connection(fail_silently=False, **self.options)
            self._backend.open()

    def _disconnect(self) -> None:
        backend, self._backend = self._backend, None
        if backend is not None:
            with contextlib.suppress(Exception):  # any error would end the thread
                backend.close()

    def _refusal(self, error: Exception) -> DeliveryResult:
        code, text = _reply(error)
        if isinstance(error, smtplib.SMTPNotSupportedError) or 500 <= code < 600:
            return self._result(DeliveryStatus.REJECTED, f"rejected the mail: {text}")
        status = DeliveryStatus.DEFERRED if _can_continue(error) else DeliveryStatus.FAILED
        return self._result(status, f"did not accept the mail: {text}")

    def _result(self, status: DeliveryStatus, predicate: str) -> DeliveryResult:
        return DeliveryResult(status, f"the mail server {self.name} {predicate}", charged=False)


def _can_continue(error: Exception) -> bool:
    """Return whether the server refused this message but would accept another."""
    return (
        isinstance(error, smtplib.SMTPRecipientsRefused | smtplib.SMTPResponseException)
        and _reply(error)[0] != 421
    )


def _reply(error: Exception) -> tuple[int, str]:
    """Return the code of the server's reply (0 if there is none), and the error as text."""
    text: str | bytes
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        code, text = next(iter(error.recipients.values()))
    elif isinstance(error, smtplib.SMTPResponseException):
        code, text = error.smtp_code, error.smtp_error
    else:
        return 0, str(error) or type(error).__name__
    return int(code), f"{code} {text.decode(errors='replace') if isinstance(text, bytes) else text}"
