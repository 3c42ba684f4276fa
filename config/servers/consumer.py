"""Celery's message consumer without its step for delayed messages, which Tailrace does not send. On
RabbitMQ, the step would create 28 more quorum queues and bind every queue to them."""

from celery.worker.consumer.consumer import Consumer as EveryConsumer

UNUSED = "celery.worker.consumer.delayed_delivery:DelayedDelivery"


class _Blueprint(EveryConsumer.Blueprint):  # type: ignore[misc, valid-type]
    default_steps = [step for step in EveryConsumer.Blueprint.default_steps if step != UNUSED]


class Consumer(EveryConsumer):
    Blueprint = _Blueprint
