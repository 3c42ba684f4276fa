"""Why a promotion has to wait: another import of the device has hidden points in the timeline, or
the device gets the points of another one.

Hidden points would count as duplicates, although it is not known yet whether they stay.
"""

from django.db.models import Q

from tailrace.domains.timeline.models import Device, Import
from tailrace.domains.timeline.models.location_import import State


def reason_to_wait(row: Import) -> str:
    """Return why the promotion of the import cannot begin yet; "" if it can.

    Of two imports that were promoted in part, the one that began first goes on.
    """
    others = Import.objects.in_between().filter(device=row.device_id).exclude(pk=row.pk)
    if began := row.promotion_began_at:
        others = others.filter(Q(state=State.UNDOING) | Q(promotion_began_at__lt=began))
    other = others.order_by("promotion_began_at").first()
    if other is None:
        merges = Device.objects.filter(into=row.device_id or 0).exists()
        return "another device is being merged into the device of the import" if merges else ""
    what = "is being undone" if other.state == State.UNDOING else "is promoted in part"
    return f"import {other.pk} of the same device {what}, and may still add or remove its points"
