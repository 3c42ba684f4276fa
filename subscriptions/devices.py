"""devices: the browsers that people want to be told in (RFC 8030, 8291)."""

import base64
import binascii

import http_ece
from cryptography.hazmat.primitives.asymmetric import ec
from django.contrib.auth.models import User
from django.db import transaction

from events import clock
from subscriptions import guard
from subscriptions.models import Device

MOST = 20
"""Browsers that one person may have."""
AUTH_BYTES = 16
LONGEST_NAME = 100


class DeviceError(ValueError):
    """It cannot be added; the text names the value and the way out."""


def add(user: User, url: str, p256dh: str, auth: str, name: str = "") -> Device:
    """Return the user's device for a browser's push subscription; a known one is live again.

    Takes what `PushSubscription.toJSON()` has: the endpoint and its keys in base64url. A browser
    that another person was told in becomes this one's, if it proves to be the same by its keys.
    """
    address = _checked(url)
    _check_keys(p256dh, auth)
    with transaction.atomic():
        found = Device.objects.select_for_update().filter(url=address).first()
        if found is None:
            if user.devices.filter(gone_at=None).count() >= MOST:
                raise DeviceError(
                    f"{user} has {MOST} browsers, which is the most: remove one first"
                )
            found = Device(url=address)
        elif found.user_id != user.pk and (found.p256dh, found.auth) != (p256dh, auth):
            raise DeviceError("this browser is another person's: have it subscribe anew")
        found.user, found.p256dh, found.auth = user, p256dh, auth
        found.name = name.strip()[:LONGEST_NAME]
        found.gone_at = None
        found.save()
    return found


def remove(device: Device) -> None:
    """Forget it; what waits for it is cancelled when its turn comes."""
    device.delete()


def gone(id: int) -> None:
    """Note that the push service knows the browser no more."""
    Device.objects.filter(pk=id, gone_at=None).update(gone_at=clock.now())


def encrypt(device: Device, text: bytes) -> bytes:
    """Return the text as only this browser reads it: aes128gcm (RFC 8188, 8291)."""
    encrypted: bytes = http_ece.encrypt(
        text,
        private_key=ec.generate_private_key(ec.SECP256R1()),
        dh=_bytes(device.p256dh),
        auth_secret=_bytes(device.auth),
        version="aes128gcm",
    )
    return encrypted


def _checked(url: str) -> str:
    try:
        return str(guard.check_url(url.strip()))
    except guard.Refused as error:
        raise DeviceError(str(error)) from None


def _check_keys(p256dh: str, auth: str) -> None:
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), _bytes(p256dh))
    except (ValueError, binascii.Error):
        raise DeviceError("p256dh is no key of a browser: 65 bytes in base64url") from None
    try:
        length = len(_bytes(auth))
    except (ValueError, binascii.Error):
        length = 0
    if length != AUTH_BYTES:
        raise DeviceError(f"auth is no secret of a browser: {AUTH_BYTES} bytes in base64url")


def _bytes(text: str) -> bytes:
    padded = text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4)
    return base64.b64decode(padded, altchars=b"-_", validate=True)
