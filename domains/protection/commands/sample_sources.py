"""`tailrace sample_sources`: serve sample leaks, deeds and data brokers until stopped."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from tailrace.domains.protection.sample_sources.service import SampleSources
from tailrace.net.sample_server import SampleServer, serve_until_stopped


class Command(BaseCommand):
    help = (
        "Run a server with the protocols of Have I Been Pwned, public records (SODA) and data"
        " brokers. Its leaks, deeds and listings are made up."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=settings.PROTECTION_SAMPLE_PORT)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            server = SampleServer(options["port"], SampleSources().respond)
        except (OSError, OverflowError) as error:
            raise CommandError(f"--port {options['port']}: {error}") from None
        self.stdout.write(f"sample sources: http://127.0.0.1:{server.server_port}")
        serve_until_stopped(server)
