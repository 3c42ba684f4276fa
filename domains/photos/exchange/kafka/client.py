"""The Kafka package and the connection options, which all clients of this process share."""

import logging
from types import ModuleType
from typing import Any

from django.conf import settings

log = logging.getLogger("photos.kafka")


class KafkaNotInstalled(Exception):
    """The package is not installed; the message says how to install it."""


def library() -> ModuleType:
    """Return confluent_kafka, or raise KafkaNotInstalled."""
    try:
        import confluent_kafka
    except ImportError:
        raise KafkaNotInstalled(
            "PHOTOS_KAFKA_BROKERS needs the package confluent-kafka: install tailrace[kafka]"
        ) from None
    return confluent_kafka


def client_options(own: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a client: brokers, credentials, and its own options."""
    return {
        "client.id": "tailrace",
        "log_level": 2,  # critical errors only; error_cb reports connection errors
        **settings.PHOTOS_KAFKA_OPTIONS,
        "bootstrap.servers": ",".join(settings.PHOTOS_KAFKA_BROKERS),
        "logger": log,
        **own,
    }
