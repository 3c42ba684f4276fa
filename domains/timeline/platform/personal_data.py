"""Personal data in timelines."""

from django.contrib.auth.models import User
from django.db import transaction

from tailrace.domains.timeline.devices.removal import BATCH, delete_import, delete_some
from tailrace.domains.timeline.event_types import PlacesKnown
from tailrace.domains.timeline.models import Device, Import
from tailrace.web.accounts.personal_data import PersonalData


class Timeline(PersonalData):
    """Where you were and when, your devices, and the files that you imported."""

    def delete(self, user: User) -> int:
        return delete_some_of(user.pk)


def delete_some_of(user_id: int) -> int:
    """Delete an import, some points, or a device of the user; return how many rows.

    Imports are deleted first, so that only requests of devices can still add points. These requests
    lock the device.
    """
    with transaction.atomic():
        imports = Import.objects.select_for_update().filter(user=user_id)
        if row := imports.order_by("pk").first():
            return delete_import(row)
        device = Device.objects.select_for_update().filter(user=user_id).order_by("pk").first()
        if device is None:
            return PlacesKnown.erase_some(user_id, BATCH)
        return delete_some(device) or 1
