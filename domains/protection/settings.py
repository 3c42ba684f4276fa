from typing import Annotated

from pydantic import Field

from environment.settings import AppSettings
from environment.types import Key


class ProtectionSettings(AppSettings):
    """Scans for subscribers of a plan, and the providers that they ask."""

    prefixes = ("PROTECTION_",)

    PROTECTION_HASH_KEY: Annotated[str, Key()] = ""
    """32 bytes in urlsafe base64, the key of the hashes by which watched values are compared;
    empty: derived from SECRET_KEY"""
    PROTECTION_MAX_ITEMS_PER_USER: int = Field(1000, ge=1, le=100_000)
    """values that an account may have watched"""
