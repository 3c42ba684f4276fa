"""`manage.py photos_inlet`: store the photos that others announce on a Kafka topic."""

import signal
import threading
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from domains.photos.kafka.client import Missing
from domains.photos.kafka.inlet import Inlet


class Command(BaseCommand):
    """Read the topic in the foreground until stopped; a process of its own, or several."""

    help = "Store the photos that others announce on Kafka (PHOTOS_KAFKA_INLET_TOPIC)."

    def handle(self, *args: Any, **options: Any) -> None:
        for name in ("PHOTOS_KAFKA_BROKERS", "PHOTOS_KAFKA_INLET_TOPIC"):
            if not getattr(settings, name):
                raise CommandError(f"{name} is not set; photos are read from Kafka where both are")
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        inlet = Inlet(stop)
        try:
            inlet.run()
        except Missing as error:
            raise CommandError(str(error)) from None
        self.stdout.write(
            f"photos_inlet: {inlet.stored} photos stored, {inlet.known} known already,"
            f" {inlet.dead} messages to {settings.PHOTOS_KAFKA_DLQ_TOPIC}"
        )
