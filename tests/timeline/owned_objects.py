"""Objects of a user in this domain, for tests that request every address."""

from typing import Any

from django.contrib.auth.models import User

from tailrace.domains.timeline.models import Device, Import


def owned_objects(owner: User) -> dict[str, Any]:
    device = Device.objects.create(user=owner, name="default")
    row = Import.objects.create(
        user=owner, device=device, state="grace", file_name="a.gpx", storage_key="", size=1
    )
    return {"imports": row.pk, "import": row.pk, "devices": device.pk, "days": "2026-10-01"}
