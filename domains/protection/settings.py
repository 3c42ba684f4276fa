import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from tailrace.environment.insecure import lacks_tls
from tailrace.environment.settings import AppSettings, Problem
from tailrace.environment.types import Key, Rule, Url


@dataclass(frozen=True)
class HexDigits(Rule):
    """A key of `count` hexadecimal digits. Error messages do not show it."""

    kind = "key"
    count: int

    def read(self, text: str) -> str:
        if not re.fullmatch(rf"[0-9a-fA-F]{{{self.count}}}", text):
            raise ValueError(f"is not a key of {self.count} hexadecimal digits")
        return text.lower()


class ProtectionSettings(AppSettings):
    """Scans for subscribers of a plan, and the providers that scans use."""

    prefixes = ("PROTECTION_",)

    PROTECTION_HASH_KEY: Annotated[str, Key()] = ""
    """32 bytes in urlsafe base64, the key of the hashes that identify watched values; empty:
    derived from SECRET_KEY"""
    PROTECTION_MAX_ITEMS_PER_USER: int = Field(1000, ge=1, le=100_000)
    """maximum number of watched values of an account"""
    PROTECTION_SCANS_PER_DAY: int = Field(5, ge=1, le=1000)
    """scans that an account may request per day, in addition to the scheduled scans of its plan"""
    PROTECTION_HIBP_KEY: Annotated[str, HexDigits(32)] = ""
    """key of Have I Been Pwned, 32 hexadecimal digits; empty: values are not looked up there"""
    PROTECTION_HIBP_PER_MINUTE: int = Field(10, ge=1, le=60_000)
    """requests per minute that the subscription of this key allows, for all workers together"""
    PROTECTION_HIBP_URL: Annotated[str, Url(("http", "https"))] = (
        "https://haveibeenpwned.com/api/v3"
    )
    """URL of the API of Have I Been Pwned"""
    PROTECTION_PASSWORDS_URL: Annotated[str, Url(("http", "https"))] = (
        "https://api.pwnedpasswords.com"
    )
    """URL of the API of leaked passwords, which is used when somebody checks a password"""
    PROTECTION_BROKERS_FILE: str = ""
    """YAML file of the data brokers, see docs/domains/protection.md; empty: a few sample
    brokers, which do not exist"""
    PROTECTION_LOCAL_BROKERS: bool = False
    """allow brokers at addresses that are not public, for tests and demos"""

    def conflicts(self) -> Iterator[Problem]:
        """Reject a URL that would send the key unencrypted, except to this machine."""
        if self.PROTECTION_HIBP_KEY and lacks_tls(self.PROTECTION_HIBP_URL):
            message = "would send PROTECTION_HIBP_KEY unencrypted: use an https:// URL"
            yield Problem("PROTECTION_HIBP_URL", message)
