"""sealing: what is secret is encrypted at rest, by ENCRYPTION_KEYS."""

import base64
import hashlib
from functools import cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class Unreadable(Exception):
    """No key decrypts it. The text names the setting and nothing of what was sealed."""


def seal(text: str) -> str:
    """Return the text encrypted by the newest key: ASCII, different each time."""
    return _box().encrypt(text.encode()).decode()


def unseal(sealed: str) -> str:
    """Return what was sealed; Unreadable if none of the keys did it."""
    try:
        return _box().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise Unreadable(
            "it was encrypted by a key that ENCRYPTION_KEYS has not (or by another SECRET_KEY,"
            " if that is empty): add the older key behind the newest"
        ) from None


def _box() -> MultiFernet:
    return _by_keys(tuple(settings.ENCRYPTION_KEYS) or (_derived(settings.SECRET_KEY),))


@cache
def _by_keys(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key + "=" * (-len(key) % 4)) for key in keys])


def _derived(secret: str) -> str:
    digest = hashlib.sha256(b"tailrace encryption " + secret.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode()
