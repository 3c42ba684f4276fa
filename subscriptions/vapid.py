"""vapid: how Web Push services know us: a key pair, and a token signed by it (RFC 8292)."""

import base64
from functools import cache

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings
from py_vapid import Vapid02

from events import clock

TOKEN_SECONDS = 12 * 3600


def new_keys() -> tuple[str, str]:
    """Return a private and a public key, base64url, as VAPID_PRIVATE_KEY and browsers want them."""
    key = ec.generate_private_key(ec.SECP256R1())
    number = key.private_numbers().private_value
    return _base64url(number.to_bytes(32, "big")), _public(key)


def public_key() -> str:
    """Return what a page gives to `pushManager.subscribe` (applicationServerKey); empty if push
    is not set up."""
    return _public(_signer(settings.VAPID_PRIVATE_KEY).private_key) if is_set_up() else ""


def is_set_up() -> bool:
    return bool(settings.VAPID_PRIVATE_KEY and settings.VAPID_SUBJECT)


def authorization(origin: str) -> str:
    """Return the header Authorization for the push service at this origin (https://host:port)."""
    claims = {
        "aud": origin,
        "exp": int(clock.now().timestamp()) + TOKEN_SECONDS,
        "sub": settings.VAPID_SUBJECT,
    }
    return str(_signer(settings.VAPID_PRIVATE_KEY).sign(claims)["Authorization"])


@cache
def _signer(private: str) -> Vapid02:
    return Vapid02.from_raw(private.rstrip("=").encode())


def _public(key: ec.EllipticCurvePrivateKey) -> str:
    return _base64url(key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))


def _base64url(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
