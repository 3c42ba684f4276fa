"""The owner's decisions about devices: rename, merge, delete.

    rename   the old name stays a former name: points that come with it are points of the device
    merge    its names become former names of the other device, and a job moves its points there
    delete   the points are hidden at once, and a job deletes them

A device that is merged or deleted loses its names in the same transaction, which locks it. So a
request or an import either used the device before, or finds the other one, or makes a new one.
"""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db import transaction

from tailrace.db.query import database_now
from tailrace.domains.timeline.devices.removal import enqueue_removals
from tailrace.domains.timeline.imports import quotas
from tailrace.domains.timeline.live.announce import announce
from tailrace.domains.timeline.models import Device, Import
from tailrace.domains.timeline.models.location_import import ENDED, State
from tailrace.web.accounts.user_lock import locked


class DeviceNotFound(LookupError):
    """The user has no device with this id, or it is being merged or deleted."""


class NotNow(Exception):
    """The device cannot be changed so, or not now; the message states the reason."""


def rename(user: User, id: int, text: str) -> Device:
    """Give the device another name. Raises DeviceNotFound, NotNow, or UploadRejected for a text
    that is no name."""
    name = quotas.device_name(text)
    with locked(user):
        [device] = _lock(user, id)
        others = Device.objects.present().filter(user=user).exclude(pk=id)
        if others.filter(name=name).exists():
            raise NotNow(f"another device of yours has the name {name}; merge the two instead")
        _take_names(others, [name])
        old, device.name = device.name, name
        device.remember(old)
        device.save(update_fields=["name", "former_names"])
    return device


def merge(user: User, id: int, into: int) -> Device:
    """Enqueue a job that moves the points and imports of the device to the device `into`, and
    return the device. Raises DeviceNotFound or NotNow."""
    if id == into:
        raise NotNow("a device cannot be merged into itself")
    with locked(user):
        device, other = _lock(user, id, into)
        _check_merges(device)
        _check_imports(device, other)
        other.remember(*device.former_names, device.name)
        other.save(update_fields=["former_names"])
        device.into = other
        return _remove(device)


def delete(user: User, id: int, *, with_points: bool) -> Device:
    """Enqueue a job that deletes the device with its points and imports, and return the device.
    Without `with_points`, only a device without points is deleted. Raises DeviceNotFound or
    NotNow."""
    with locked(user):
        [device] = _lock(user, id)
        _check_merges(device)
        _check_imports(device)
        if not with_points and device.points.exists():
            raise NotNow(
                f"{device.name} has points; confirm that they are deleted, too (with_points)"
            )
        return _remove(device)


def _lock(user: User, *ids: int) -> list[Device]:
    """Lock the devices in the order of their ids; return them in the given order."""
    rows = Device.objects.select_for_update().present().filter(user=user, pk__in=ids)
    devices = {device.pk: device for device in rows.order_by("pk")}
    if len(devices) < len(ids):
        raise DeviceNotFound("there is no such device")
    return [devices[id] for id in ids]


def _take_names(others: Iterable[Device], names: Iterable[str]) -> None:
    """Remove these names from the former names of the other devices."""
    for other in others:
        if taken := set(other.former_names) & set(names):
            other.former_names = [each for each in other.former_names if each not in taken]
            other.save(update_fields=["former_names"])


def _check_imports(*devices: Device) -> None:
    imports = Import.objects.filter(device__in=devices).exclude(state__in=ENDED)
    if row := imports.select_related("device").order_by("pk").first():
        state = State(row.state).label.lower()
        raise NotNow(
            f"import {row.pk} of {row.device_label} is {state}; wait for its end, or cancel it"
        )


def _check_merges(device: Device) -> None:
    if other := device.merging.first():
        raise NotNow(f"{other.label} is being merged into {device.name}; wait for its end")


def _remove(device: Device) -> Device:
    with transaction.atomic():
        announce([device.pk])
        device.name, device.former_names = device.unused_name(), []
        device.removed_at = database_now()
        device.save(update_fields=["name", "former_names", "removed_at", "into"])
        enqueue_removals([device.pk])
    return device
