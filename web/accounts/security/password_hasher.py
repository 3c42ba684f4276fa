"""A password hasher with a limit of hashes at once, so that logins leave CPU to other requests."""

import threading

from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher


class TooManyAtOnce(Exception):
    """This process already hashes PASSWORD_HASHES_AT_ONCE passwords; try again later."""


_permits = threading.BoundedSemaphore(settings.PASSWORD_HASHES_AT_ONCE)


class BoundedPasswordHasher(PBKDF2PasswordHasher):
    """Django's default hasher, limited to PASSWORD_HASHES_AT_ONCE hashes at once per process."""

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        """Return the hash. Raises TooManyAtOnce instead of waiting."""
        if not _permits.acquire(blocking=False):
            raise TooManyAtOnce
        try:
            encoded: str = super().encode(password, salt, iterations)
            return encoded
        finally:
            _permits.release()
