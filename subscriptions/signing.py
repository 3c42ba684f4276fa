"""signing: webhooks as Standard Webhooks has them (standardwebhooks.com)."""

import base64
import binascii
import hashlib
import hmac
import os

PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret() -> str:
    """Return a fresh secret, as it is shown to whoever checks signatures with it."""
    return PREFIX + base64.b64encode(os.urandom(SECRET_BYTES)).decode()


def key_of(secret: str) -> bytes:
    """Return the key that a secret stands for; ValueError if it is not whsec_ and base64."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not key or not secret.startswith(PREFIX):
        raise ValueError(f"a webhook secret is {PREFIX} followed by a key in base64")
    return key


def sign(key: bytes, id: str, timestamp: str, body: bytes) -> str:
    """Return one signature of webhook-signature: HMAC-SHA256 over `id.timestamp.body`, version 1.

    A header with several, for several keys, has them separated by spaces.
    """
    signed = b".".join((id.encode(), timestamp.encode(), body))
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
