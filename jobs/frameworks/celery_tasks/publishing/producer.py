"""Publish a call as a job, where Celery would use a connection to the broker."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from celery.exceptions import ImproperlyConfigured
from celery.utils.time import maybe_iso8601, maybe_make_aware

from tailrace.jobs.frameworks.celery_tasks import running
from tailrace.jobs.frameworks.celery_tasks.message import encoding
from tailrace.jobs.frameworks.celery_tasks.message.message import Message
from tailrace.jobs.frameworks.celery_tasks.message.opaque import encoded, is_accepted
from tailrace.jobs.frameworks.celery_tasks.publishing.scope import collecting

log = structlog.get_logger(__name__)

_DEFAULTS: dict[str, Any] = {
    "retries": 0, "timelimit": [None, None], "replaced_task_nesting": 0, "stamps": {}, "lang": "py",
}  # fmt: skip
"""Headers that are left out if they have this value."""
_OWN = ("id", "task", "argsrepr", "kwargsrepr")
"""Headers that are left out, because the payload has them, or they show the arguments."""


_OF_BROKER = (
    "retry", "retry_policy", "delivery_mode", "timeout", "confirm_timeout", "compression",
    "correlation_id", "expiration", "mandatory", "immediate",
)  # fmt: skip
"""Properties of a message that mean nothing without a broker, or that the job has."""


class Producer:
    """Does for Celery what kombu's producer does, and sends nothing. `options`: of the call."""

    serializer = "json"
    recoverable_connection_errors: tuple[type[BaseException], ...] = ()
    """Of the connection, for which it stands, too."""

    def __init__(self, task: Any, options: dict[str, Any]) -> None:
        self.task = task
        self.options = options
        self.connection = self

    @contextmanager
    def _reraise_as_library_errors(self) -> Iterator[None]:
        yield

    def publish(
        self,
        body: Any,
        *,
        headers: dict[str, Any],
        routing_key: str | None = None,
        exchange: Any = None,
        declare: Any = None,
        serializer: str | None = None,
        priority: int | None = None,
        reply_to: str = "",
        **properties: Any,
    ) -> None:
        """Create the job of this message, or let the scope collect it. Raises NotJson, or
        ImproperlyConfigured if the message is of a kind that jobs cannot have."""
        if "id" not in headers:
            self._send_event(body, headers=headers, routing_key=routing_key, exchange=exchange,
                             declare=declare, serializer=serializer, **properties)  # fmt: skip
            return
        name = self.task.name
        args, kwargs, embed = body
        app, opaque = self.task.app, None
        plain_kwargs: dict[str, Any] = {}
        if serializer in (None, "json"):
            plain_args, plain_kwargs = encoding.arguments_to_json(name, args, kwargs)
        elif is_accepted(app, serializer):
            plain_args, opaque = encoded(serializer, args, kwargs)
        else:
            raise ImproperlyConfigured(
                f"{name} has the serializer {serializer!r}; the arguments of a task that runs as a"
                " job are JSON, or in a serializer of your own in accept_content: remove the"
                " serializer, and pass ids instead of objects"
            )
        message = Message(
            task=self.task,
            id=headers["id"],
            args=plain_args,
            kwargs=plain_kwargs,
            opaque=opaque,
            headers=self._stored(headers),
            embed=dict(embed or {}),
            queue=self._queue(routing_key, exchange, declare),
            priority=priority,
            reply_to=reply_to,
            properties=encoding.to_json(
                {name: each for name, each in properties.items() if name not in _OF_BROKER}
            ),
            nesting=headers.get("replaced_task_nesting") or 0,
        )
        if (countdown := self.options.get("countdown")) is not None:
            message.delay = max(0.0, float(countdown))
        elif eta := headers.get("eta"):
            message.due_at = maybe_make_aware(maybe_iso8601(eta), app.timezone)
        expires = self.options.get("expires", self.task.expires)
        if isinstance(expires, int | float):
            message.expires_after = float(expires)
        call = running.call_of(message.id)
        if call is not None and call.is_retry(message):
            call.retry = message
            return
        with collecting(app) as scope:
            scope.add(message)

    def _stored(self, headers: dict[str, Any]) -> dict[str, Any]:
        own = set(_OWN) - self.options.keys()
        return encoding.to_json(
            {
                name: value
                for name, value in headers.items()
                if value is not None and name not in own and _DEFAULTS.get(name) != value
            }
        )

    def _queue(self, routing_key: str | None, exchange: Any, declare: Any) -> str:
        """Return the name of the queue that the message is routed to; empty if there is none."""
        given = self.options.get("queue")
        if given:
            return str(getattr(given, "name", given))
        if declare:
            return str(declare[0].name)
        if exchange == "":
            return routing_key or ""
        name = getattr(exchange, "name", exchange)
        for queue in self.task.app.amqp.queues.values():
            if queue.routing_key == routing_key and queue.exchange.name == name:
                return str(queue.name)
        return ""

    def _send_event(self, body: Any, **message: Any) -> None:
        """Send an event of Celery's, such as `task-sent`, to the broker. An error is logged: the
        job needs no broker."""
        try:
            with self.task.app.producer_pool.acquire(block=True) as producer:
                producer.publish(body, **message)
        except Exception as error:  # kombu's transports raise their own classes
            log.warning("celery_tasks.event_not_sent", error=f"{type(error).__name__}: {error}")
