from datetime import timedelta
from io import BytesIO
from pathlib import Path

from django.contrib.auth.models import User
from django.db import transaction

from tailrace.db.query import database_now
from tailrace.domains.timeline.imports.receive import receive
from tailrace.domains.timeline.models import Import
from tailrace.samples.timeline.month import as_gpx, month
from tailrace.web.uploads.errors import StorageUnavailable, UploadRejected

WALK = Path(__file__).with_name("cerknica.gpx")
WALK_SECONDS, MONTH_SECONDS = 30, 120
"""The grace of each sample: short, so that a newcomer sees the promotion. Other imports have
IMPORT_GRACE_SECONDS."""


def seed_timeline() -> str:
    """Import the walk and a generated month for the first admin, unless there are imports. Return
    why they were not imported, or nothing."""
    admin = User.objects.filter(is_superuser=True).order_by("pk").first()
    if admin is None or Import.objects.exists():
        return ""
    yesterday = (database_now() - timedelta(days=1)).date()
    try:
        _import(admin, WALK.read_bytes(), "walk-around-a-lake.gpx", "watch", WALK_SECONDS)
        file = as_gpx(month(yesterday))
        _import(admin, file, "a-month-in-berlin.gpx", "phone", MONTH_SECONDS)
    except (StorageUnavailable, UploadRejected) as error:
        return f"The timeline samples were not imported: {error}"
    return ""


def _import(user: User, file: bytes, name: str, device: str, grace_seconds: int) -> None:
    with transaction.atomic():
        row = receive(user, BytesIO(file), len(file), name, device)
        row.promote_at = database_now() + timedelta(seconds=grace_seconds)
        row.save(update_fields=["promote_at"])
