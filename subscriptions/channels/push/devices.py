"""Users' browsers with push enabled (RFC 8030, 8291)."""

import base64

import http_ece
from cryptography.hazmat.primitives.asymmetric import ec
from django.contrib.auth.models import User

from tailrace.db import clock
from tailrace.net import ssrf_guard
from tailrace.subscriptions.models import Device
from tailrace.web.accounts.user_lock import locked

MAX_DEVICES = 20
"""The maximum per user."""
AUTH_BYTES = 16
NAME_LENGTH = 100


class DeviceError(ValueError):
    """The browser was refused. The message names the wrong value and the remedy."""


def add(user: User, url: str, p256dh: str, auth: str, name: str = "") -> Device:
    """Create or reactivate the device of a browser's push subscription, and return it.

    The arguments are the fields of `PushSubscription.toJSON()`: the endpoint, and its keys in
    base64url. A device of another user is transferred if its keys are the same; otherwise, and for
    invalid values, raise DeviceError.
    """
    try:
        address = str(ssrf_guard.check_url(url.strip()))
    except ssrf_guard.AddressRefused as error:
        raise DeviceError(str(error)) from None
    _check_keys(p256dh, auth)
    with locked(user):
        device = Device.objects.select_for_update().filter(url=address).first()
        if device is None:
            if user.devices.filter(gone_at=None).count() >= MAX_DEVICES:
                raise DeviceError(
                    f"{user} already has {MAX_DEVICES} browsers, the maximum: remove one first"
                )
            device = Device(url=address)
        elif device.user_id != user.pk and (device.p256dh, device.auth) != (p256dh, auth):
            raise DeviceError("this browser belongs to another user: enable push in it again")
        device.user, device.p256dh, device.auth = user, p256dh, auth
        device.name = name.strip()[:NAME_LENGTH]
        device.gone_at = None
        device.save()
    return device


def remove(device: Device) -> None:
    """Delete the device. Its waiting jobs are cancelled when they are claimed."""
    device.delete()


def mark_gone(id: int) -> None:
    """Record that the push service no longer knows the browser."""
    Device.objects.filter(pk=id, gone_at=None).update(gone_at=clock.now())


def encrypt(device: Device, text: bytes) -> bytes:
    """Encrypt the text for this browser with aes128gcm (RFC 8188, 8291)."""
    encrypted: bytes = http_ece.encrypt(
        text,
        private_key=ec.generate_private_key(ec.SECP256R1()),
        dh=_bytes(device.p256dh),
        auth_secret=_bytes(device.auth),
        version="aes128gcm",
    )
    return encrypted


def _check_keys(p256dh: str, auth: str) -> None:
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), _bytes(p256dh))
    except ValueError:
        raise DeviceError("p256dh is not the key of a browser: 65 bytes in base64url") from None
    try:
        length = len(_bytes(auth))
    except ValueError:
        length = 0
    if length != AUTH_BYTES:
        raise DeviceError(f"auth is not the secret of a browser: {AUTH_BYTES} bytes in base64url")


def _bytes(text: str) -> bytes:
    padded = text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4)
    return base64.b64decode(padded, altchars=b"-_", validate=True)
