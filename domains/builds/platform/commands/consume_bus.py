"""`tailrace consume_bus`: record the events of a message bus until stopped."""

import signal
import threading
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from tailrace.domains.builds.sources.bus_consumer import BusConsumer, split_url


class Command(BaseCommand):
    help = "Record the events that a build service publishes on its message bus (BUS_SOURCE_URL)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--exchange",
            help="name of an existing topic exchange; default: ?exchange= of BUS_SOURCE_URL",
        )
        parser.add_argument(
            "--queue",
            help="name of a durable queue, which keeps messages while this command is not running; "
            "default: ?queue= of BUS_SOURCE_URL, or a temporary queue",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.BUS_SOURCE_URL:
            example = "amqps://opensuse:opensuse@rabbit.opensuse.org"
            raise CommandError(f"BUS_SOURCE_URL is not set; e.g. {example}")
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        url, exchange, queue = split_url(settings.BUS_SOURCE_URL)
        consumer = BusConsumer(
            url,
            settings.BUS_NAMESPACE,
            exchange=options["exchange"] or exchange,
            queue=options["queue"] or queue,
            keys=settings.BUS_SOURCE_KEYS,
            stop=stop,
        )
        consumer.run()
        self.stdout.write(f"consume_bus: {consumer.events} events recorded")
