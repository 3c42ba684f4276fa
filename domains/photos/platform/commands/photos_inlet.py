"""`tailrace photos_inlet`: store the photos that other systems send to a Kafka topic."""

import signal
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from tailrace.domains.photos.exchange.kafka.client import KafkaNotInstalled
from tailrace.domains.photos.exchange.kafka.consumer import PhotoConsumer


class Command(BaseCommand):
    """Read the topic until SIGINT or SIGTERM. Several processes share the partitions."""

    help = "Store the photos that other systems send to PHOTOS_KAFKA_INLET_TOPIC."

    def handle(self, *args: Any, **options: Any) -> None:
        for name in ("PHOTOS_KAFKA_BROKERS", "PHOTOS_KAFKA_INLET_TOPIC"):
            if not getattr(settings, name):
                raise CommandError(f"{name} is not set. Set it to read photos from Kafka.")
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        consumer = PhotoConsumer(stop)
        try:
            consumer.run()
        except KafkaNotInstalled as error:
            raise CommandError(str(error)) from None
        self.stdout.write(
            f"photos_inlet: {consumer.stored} photos stored, {consumer.repeated} already stored,"
            f" {consumer.dead} messages sent to {settings.PHOTOS_KAFKA_DLQ_TOPIC}"
        )
