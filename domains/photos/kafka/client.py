"""What all our Kafka clients have in common: the package, and where the cluster is."""

import logging
from types import ModuleType
from typing import Any

from django.conf import settings

log = logging.getLogger("photos.kafka")


class Missing(Exception):
    """The package is not installed; the text says how to install it."""


def library() -> ModuleType:
    """Return confluent_kafka, or raise Missing."""
    try:
        import confluent_kafka
    except ImportError:
        raise Missing(
            "PHOTOS_KAFKA_BROKERS: needs confluent-kafka: `pip install -r requirements-kafka.txt`"
        ) from None
    return confluent_kafka


def options(own: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of a client: where the cluster is, how to get in, and its own."""
    return {
        "client.id": "tailrace",
        "log_level": 2,  # what is critical; of connections we hear by error_cb
        **settings.PHOTOS_KAFKA_OPTIONS,
        "bootstrap.servers": ",".join(settings.PHOTOS_KAFKA_BROKERS),
        "logger": log,
        **own,
    }
