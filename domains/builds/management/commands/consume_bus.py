"""`manage.py consume_bus`: record what is announced on a message bus."""

import signal
import threading
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from domains.builds.sources.bus import BusSource, address


class Command(BaseCommand):
    """Listen to the bus in the foreground until stopped; a process of its own."""

    help = "Record the events that a build service announces on its message bus (BUS_SOURCE_URL)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--exchange", help="topic exchange, which must exist; else BUS_SOURCE_URL's ?exchange="
        )
        parser.add_argument(
            "--queue",
            help="name of a durable queue, which keeps what comes while nobody listens; else "
            "?queue=, else a queue of the broker's choice that lives as long as the connection",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.BUS_SOURCE_URL:
            raise CommandError(
                "BUS_SOURCE_URL is not set; e.g. amqps://opensuse:opensuse@rabbit.opensuse.org"
            )
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        url, exchange, queue = address(settings.BUS_SOURCE_URL)
        source = BusSource(
            url,
            settings.BUS_NAMESPACE,
            exchange=options["exchange"] or exchange,
            queue=options["queue"] or queue,
            stop=stop,
        )
        source.run()
        self.stdout.write(f"consume_bus: {source.events} events recorded")
