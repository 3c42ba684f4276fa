"""`tailrace seed_records`: add a source that reads the sample repository."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import transaction

from tailrace.domains.records.models import Source
from tailrace.domains.records.sources.requests import request_pull, sync_schedules


class Command(BaseCommand):
    """Does nothing if a source exists, so it can be repeated."""

    help = (
        "Add the sample repository of `make run` as a source, to be read now and every 5 minutes."
    )

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        if Source.objects.exists():
            return
        url = f"http://127.0.0.1:{settings.RECORDS_SAMPLE_PORT}/oai"
        source = Source.objects.create(
            name="sample-library", kind="oai_pmh", url=url, cron="*/5 * * * *"
        )
        sync_schedules([source])
        request_pull(source.pk)
