"""Split an import whose file has the points of several devices, which their tags tell apart.

    import ──► parsed once, which counts the tags ──► the import of one device, parsed again
                                                └──► an import for each further device

Each import has its own device, grace, promotion and undo. They share the stored file. The device of
a tag has the name or former name `Google 1573289321`, so that a later file finds it.
"""

from tailrace.domains.timeline.imports.cleanup import delete_unused_devices
from tailrace.domains.timeline.imports.files.parsing.tally import Tally
from tailrace.domains.timeline.imports.queues import STAGE, enqueue_step
from tailrace.domains.timeline.imports.quotas import device_of
from tailrace.domains.timeline.imports.steps import runs
from tailrace.domains.timeline.models import Device, Import
from tailrace.domains.timeline.models.location_import import State
from tailrace.web.accounts.user_lock import locked
from tailrace.web.uploads.errors import QuotaExceeded

MOST_PARTS = 20
"""Maximum devices of a file that become devices; the points of others stay together."""


def by_tags(row: Import, tally: Tally) -> bool:
    """Split the import if the file has the tags of several devices, and the user did not ask for
    one device. Return whether it was split, and is to be parsed again."""
    tags = [tag for tag, _ in tally.tags.most_common() if tag]
    if not tags or row.one_device or row.tags or row.promotion_began_at:
        return False
    if len(tags) == 1:
        _use_device_of(row, tags[0])
        return False
    with locked(row.user):
        own = Device.objects.select_for_update().get(pk=row.device_id or 0)
        devices = _devices_of(row, tags[:MOST_PARTS])
        if not devices:
            return False
        locked_row = runs.lock_run(row.pk, row.run, State.PARSING)
        if all(tag in devices for tag in tally.tags):
            _keep(locked_row, {"only": tags[0]}, devices.pop(tags[0]))
        else:
            _keep(locked_row, {"without": list(devices)}, own)
        for tag, device in devices.items():
            _add_part(locked_row, tag, device)
        delete_unused_devices([own.pk])
    return True


def _devices_of(row: Import, tags: list[str]) -> dict[str, Device]:
    """Return the device of each tag, as far as the user may have more devices."""
    devices: dict[str, Device] = {}
    for tag in tags:
        try:
            devices[tag] = device_of(row.user, name_of(tag))
        except QuotaExceeded:
            break
    return devices


def name_of(tag: str) -> str:
    return f"Google {tag}"


def _use_device_of(row: Import, tag: str) -> None:
    """Use the device of the tag if there is one. Otherwise, the import's device becomes it."""
    with locked(row.user):
        own = Device.objects.select_for_update().get(pk=row.device_id or 0)
        devices = Device.objects.select_for_update(no_key=True).filter(user=row.user)
        device = devices.called(name_of(tag))
        if device is None:
            own.remember(name_of(tag))
            own.save(update_fields=["former_names"])
        elif device != own:
            locked_row = runs.lock_run(row.pk, row.run, State.PARSING)
            locked_row.device = row.device = device
            locked_row.save(update_fields=["device"])
            delete_unused_devices([own.pk])


def _keep(row: Import, tags: dict[str, object], device: Device) -> None:
    """Let the import have only the points of these tags. Its job parses the file again."""
    row.tags, row.device, row.state = tags, device, State.QUEUED
    row.staged = row.rejected = row.bytes_read = 0
    row.save(update_fields=["tags", "device", "state", "staged", "rejected", "bytes_read"])


def _add_part(row: Import, tag: str, device: Device) -> None:
    part = Import.objects.create(
        user_id=row.user_id, device=device, state=State.QUEUED, file_name=row.file_name,
        storage_key=row.storage_key, size=row.size, created_at=row.created_at,
        tags={"only": tag}, part_of=row,
    )  # fmt: skip
    part.job_id = enqueue_step(STAGE, part)
    part.save(update_fields=["job_id"])
