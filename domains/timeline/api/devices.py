"""Devices in the API: list, rename, merge, delete."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router, Status
from pydantic import BaseModel, Field

from tailrace.domains.timeline.api.schemas import DeviceIn, DeviceOut, MergeIn
from tailrace.domains.timeline.devices import decisions
from tailrace.domains.timeline.models import Device
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.problems import Problem, not_found
from tailrace.web.uploads.api import upload_problems

READ, WRITE = Needs("timeline:read"), Needs("timeline:devices")
router = Router()


class DeleteQuery(BaseModel):
    with_points: Annotated[
        bool, Field(description="also delete a device that has points, with its points")
    ] = False


@router.get("", auth=READ, response=list[DeviceOut], summary="Your devices")
def list_devices(request: HttpRequest) -> list[DeviceOut]:
    """The devices that recorded your points. They include devices being merged or deleted."""
    devices = Device.objects.with_counts().filter(user=caller(request).user)
    return [device_out(device) for device in devices.removed_last()]


@router.patch("/{int:id}", auth=WRITE, response=DeviceOut, summary="Rename a device")
def rename_device(request: HttpRequest, id: int, body: DeviceIn) -> DeviceOut:
    """Points and imports that come with the former name still belong to this device."""
    with _problems(), upload_problems():
        return _current(decisions.rename(caller(request).user, id, body.name))


@router.post(
    "/{int:id}/merge", auth=WRITE, response={202: DeviceOut}, summary="Merge a device into another"
)
def merge_device(request: HttpRequest, id: int, body: MergeIn) -> Status[DeviceOut]:
    """A job moves its points and imports to the device `into`. Points that both have stay once.
    Points that come with its names are then points of `into`. Returns 409 with the reason while an
    import of either device has not ended."""
    with _problems():
        return Status(202, _current(decisions.merge(caller(request).user, id, body.into)))


@router.delete("/{int:id}", auth=WRITE, response={202: DeviceOut}, summary="Delete a device")
def delete_device(request: HttpRequest, id: int, query: Query[DeleteQuery]) -> Status[DeviceOut]:
    """Its points are hidden at once, and a job deletes them with its imports. Returns 409 if the
    device has points and you do not confirm that they are deleted, too, or while an import of the
    device has not ended."""
    user = caller(request).user
    with _problems():
        return Status(202, _current(decisions.delete(user, id, with_points=query.with_points)))


def device_out(device: Device) -> DeviceOut:
    state = "merging" if device.into_id else "deleting" if device.removed_at else "present"
    return DeviceOut.of(device, name=device.label, state=state, into=device.into_id)


def _current(device: Device) -> DeviceOut:
    return device_out(Device.objects.with_counts().get(pk=device.pk))


@contextmanager
def _problems() -> Iterator[None]:
    try:
        yield
    except decisions.DeviceNotFound:
        raise not_found("device") from None
    except decisions.NotNow as error:
        raise Problem(409, str(error)) from None
