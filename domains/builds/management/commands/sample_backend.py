"""`manage.py sample_backend`: a build service's notification log to try Tailrace with."""

import signal
import threading
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from domains.builds.sample.server import Backend


class Command(BaseCommand):
    """Serve the sample backend in the foreground until it is stopped."""

    help = "Serve a sample backend whose notification log replays captured events."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=settings.SAMPLE_BACKEND_PORT)
        parser.add_argument("--rate", type=float, default=3.0, help="notifications per second")
        parser.add_argument(
            "--state",
            type=Path,
            default=settings.VAR_DIR / "sample-backend.jsonl",
            help="file in which the log outlives a restart",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["rate"] <= 0:
            raise CommandError(f"--rate is {options['rate']}; give more than 0 per second")
        try:
            backend = Backend(options["port"], options["state"])
        except (OSError, OverflowError) as error:
            raise CommandError(f"--port {options['port']}: {error}") from None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: threading.Thread(target=backend.shutdown).start())
        threading.Thread(target=backend.live, args=[options["rate"]], daemon=True).start()
        self.stdout.write(f"sample backend: {backend.url}, {options['rate']:g} events per second")
        try:
            backend.serve_forever(poll_interval=0.2)
        finally:
            backend.server_close()
