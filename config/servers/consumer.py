"""Celery's message consumer, without steps that delay the start of a task."""

from typing import Any

from celery.worker.consumer.consumer import Consumer as EveryConsumer

UNUSED = "celery.worker.consumer.delayed_delivery:DelayedDelivery"
EVENTS_SECONDS = 0.25
"""How long the events of tasks, which Flower shows, are collected before they are sent."""


class _Blueprint(EveryConsumer.Blueprint):  # type: ignore[misc, valid-type]
    default_steps = [step for step in EveryConsumer.Blueprint.default_steps if step != UNUSED]


class Consumer(EveryConsumer):
    """Without the step for delayed messages, which Tailrace does not send: on RabbitMQ, it would
    create 28 more quorum queues and bind every queue to them. The events of
    tasks are sent together after EVENTS_SECONDS: a task would wait for them otherwise."""

    Blueprint = _Blueprint
    hub: Any
    _flush_events: Any
    _will_flush = False

    def on_send_event_buffered(self) -> None:  # type: ignore[override]
        if self.hub and not self._will_flush:
            self._will_flush = True
            self.hub.call_later(EVENTS_SECONDS, self._flush_later)

    def _flush_later(self) -> None:
        self._will_flush = False
        self._flush_events()
