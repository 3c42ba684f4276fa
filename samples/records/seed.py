from django.conf import settings
from django.db import transaction

from tailrace.domains.records.models import Source
from tailrace.domains.records.sources.requests import request_pull, sync_schedules


@transaction.atomic
def seed_records() -> str:
    """Harvest the sample repository now and every five minutes, unless there is a source."""
    if not Source.objects.exists():
        url = f"http://127.0.0.1:{settings.RECORDS_SAMPLE_PORT}/oai"
        source = Source.objects.create(
            name="sample-library", kind="oai_pmh", url=url, cron="*/5 * * * *"
        )
        sync_schedules([source])
        request_pull(source.pk)
    return ""
