"""Few passwords are hashed at once: hashing takes much CPU, and other requests need some, too."""

import threading

from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher


class TooManyAtOnce(Exception):
    """This process hashes as many passwords as it may: refused at once, to be tried again."""


_places = threading.BoundedSemaphore(settings.PASSWORD_HASHES_AT_ONCE)


class BoundedPasswordHasher(PBKDF2PasswordHasher):
    """Django's default, PASSWORD_HASHES_AT_ONCE at a time in each process."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        """Return the hash, or raise TooManyAtOnce without waiting."""
        if not _places.acquire(blocking=False):
            raise TooManyAtOnce
        try:
            encoded: str = super().encode(password, salt, iterations)
            return encoded
        finally:
            _places.release()
