"""Encryption by ENCRYPTION_KEYS, and the rotation of the keys."""

import pytest
from cryptography.fernet import Fernet

from tailrace.net import encryption


def test_keys_rotate_the_newest_encrypts_and_older_ones_decrypt(settings) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode().rstrip("=")
    settings.ENCRYPTION_KEYS = [old]
    encrypted = encryption.encrypt("word")
    settings.ENCRYPTION_KEYS = [new, old]
    assert encryption.decrypt(encrypted) == "word"
    again = encryption.encrypt("word")
    settings.ENCRYPTION_KEYS = [new]
    assert encryption.decrypt(again) == "word"
    with pytest.raises(encryption.DecryptionError, match="ENCRYPTION_KEYS"):
        encryption.decrypt(encrypted)
    settings.ENCRYPTION_KEYS = []
    with pytest.raises(encryption.DecryptionError):
        encryption.decrypt(again)
    assert encryption.decrypt(encryption.encrypt("by SECRET_KEY")) == "by SECRET_KEY"
