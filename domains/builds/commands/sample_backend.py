"""`tailrace sample_backend`: serve a sample notification log until stopped."""

import signal
import threading
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from tailrace.domains.builds.sample_backend.server import SampleBackend


class Command(BaseCommand):
    help = "Run a sample backend whose notification log repeats captured events."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=settings.SAMPLE_BACKEND_PORT)
        parser.add_argument("--rate", type=float, default=3.0, help="notifications per second")
        parser.add_argument(
            "--state",
            type=Path,
            default=settings.VAR_DIR / "sample-backend.jsonl",
            help="file that stores the log, so that it continues after a restart",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["rate"] <= 0:
            raise CommandError(f"--rate must be greater than 0, not {options['rate']}")
        try:
            backend = SampleBackend(options["port"], options["state"])
        except (OSError, OverflowError) as error:
            raise CommandError(f"--port {options['port']}: {error}") from None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: threading.Thread(target=backend.shutdown).start())
        threading.Thread(target=backend.run_activity, args=[options["rate"]], daemon=True).start()
        self.stdout.write(f"sample backend: {backend.url}, {options['rate']:g} events per second")
        try:
            backend.serve_forever(poll_interval=0.2)
        finally:
            backend.server_close()
