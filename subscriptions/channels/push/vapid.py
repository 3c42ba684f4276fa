"""The key pair that identifies this server to Web Push services, and its tokens (RFC 8292)."""

from functools import cache

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings
from py_vapid import Vapid02
from py_vapid.utils import b64urlencode

from tailrace.db import clock

TOKEN_SECONDS = 12 * 3600


def new_keys() -> tuple[str, str]:
    """Return a new private key (for VAPID_PRIVATE_KEY) and its public key, in base64url."""
    key = ec.generate_private_key(ec.SECP256R1())
    number = key.private_numbers().private_value
    return b64urlencode(number.to_bytes(32, "big")), _public(key)


def public_key() -> str:
    """Return the applicationServerKey for `pushManager.subscribe`; empty if push is not set up."""
    return _public(_signer(settings.VAPID_PRIVATE_KEY).private_key) if is_set_up() else ""


def is_set_up() -> bool:
    return bool(settings.VAPID_PRIVATE_KEY and settings.VAPID_SUBJECT)


def authorization(origin: str) -> str:
    """Return the Authorization header for the push service at this origin (https://host:port)."""
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
    return b64urlencode(
        key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    )
