"""Celery's message consumer without its step for delayed messages.

Tailrace sends no delayed messages. On RabbitMQ, the step would create 28 more quorum queues, each
with reserved file handles, and bind every queue to them whenever a worker starts.
"""

from celery.worker.consumer.consumer import Consumer as EveryConsumer

UNUSED = "celery.worker.consumer.delayed_delivery:DelayedDelivery"


class _Blueprint(EveryConsumer.Blueprint):  # type: ignore[misc, valid-type]
    default_steps = [step for step in EveryConsumer.Blueprint.default_steps if step != UNUSED]


class Consumer(EveryConsumer):
    """Celery's consumer without the step UNUSED."""

    Blueprint = _Blueprint
