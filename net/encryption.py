"""Encrypt secrets that are stored in the database, with ENCRYPTION_KEYS."""

import base64
import hashlib
from functools import cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class DecryptionError(Exception):
    """None of the keys decrypts the value. The message names the setting, never the value."""


def encrypt(text: str) -> str:
    """Return the text encrypted with the newest key, in ASCII. The result differs each time."""
    return _fernet().encrypt(text.encode()).decode()


def decrypt(encrypted: str) -> str:
    """Return the original text. Raises DecryptionError if none of the keys fits."""
    try:
        return _fernet().decrypt(encrypted.encode()).decode()
    except InvalidToken:
        raise DecryptionError(
            "it was encrypted with a key that is not in ENCRYPTION_KEYS (or, if that is empty, with"
            " another SECRET_KEY): add the old key after the newest"
        ) from None


def newest_key_id() -> str:
    """Return eight hexadecimal digits that identify the newest key without revealing it."""
    return hashlib.sha256(b"tailrace key id " + _keys()[0].encode()).hexdigest()[:8]


def _keys() -> tuple[str, ...]:
    return tuple(settings.ENCRYPTION_KEYS) or (_derived_key(str(settings.SECRET_KEY)),)


def _fernet() -> MultiFernet:
    return _by_keys(_keys())


@cache
def _by_keys(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key + "=" * (-len(key) % 4)) for key in keys])


def _derived_key(secret: str) -> str:
    digest = hashlib.sha256(b"tailrace encryption " + secret.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode()
