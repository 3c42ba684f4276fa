"""The consumer of a worker's messages: Celery's, without what serves messages with a delay.

There are none. On RabbitMQ that step makes 28 more quorum queues, each with file handles that are
reserved for it, and binds every queue to them whenever a worker starts.
"""

from celery.worker.consumer.consumer import Consumer as EveryConsumer

UNUSED = "celery.worker.consumer.delayed_delivery:DelayedDelivery"


class _Blueprint(EveryConsumer.Blueprint):  # type: ignore[misc, valid-type]
    default_steps = [step for step in EveryConsumer.Blueprint.default_steps if step != UNUSED]


class Consumer(EveryConsumer):
    """See the module."""

    Blueprint = _Blueprint
