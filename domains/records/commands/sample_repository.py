"""`tailrace sample_repository`: serve sample records by OAI-PMH until it is stopped."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from tailrace.domains.records.sample_sources.library import sample_library
from tailrace.net.sample_server import SampleServer, serve_until_stopped


class Command(BaseCommand):
    help = "Run a sample OAI-PMH repository with works in the public domain."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=settings.RECORDS_SAMPLE_PORT)

    def handle(self, *args: Any, **options: Any) -> None:
        library = sample_library()
        try:
            server = SampleServer(options["port"], library.respond)
        except (OSError, OverflowError) as error:
            raise CommandError(f"--port {options['port']}: {error}") from None
        library.url = f"http://127.0.0.1:{server.server_port}/oai"
        self.stdout.write(f"sample repository: {library.url}")
        serve_until_stopped(server)
