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
    """A key of so many hexadecimal digits. No message shows it."""

    kind = "key"
    count: int

    def read(self, text: str) -> str:
        if not re.fullmatch(rf"[0-9a-fA-F]{{{self.count}}}", text):
            raise ValueError(f"is not a key of {self.count} hexadecimal digits")
        return text.lower()


class ProtectionSettings(AppSettings):
    """Scans for subscribers of a plan, and the providers that they ask."""

    prefixes = ("PROTECTION_",)

    PROTECTION_HASH_KEY: Annotated[str, Key()] = ""
    """32 bytes in urlsafe base64, the key of the hashes by which watched values are compared;
    empty: derived from SECRET_KEY"""
    PROTECTION_MAX_ITEMS_PER_USER: int = Field(1000, ge=1, le=100_000)
    """values that an account may have watched"""
    PROTECTION_SCANS_PER_DAY: int = Field(5, ge=1, le=1000)
    """scans that an account may request per day, beside those of its plan"""
    PROTECTION_SAMPLE_PORT: int = Field(5354, ge=1, le=65535)
    """port of the sample sources of `make run`, if PROTECTION_HIBP_KEY is not set"""
    PROTECTION_HIBP_KEY: Annotated[str, HexDigits(32)] = ""
    """key of Have I Been Pwned, 32 hexadecimal digits; empty: values are not looked up there"""
    PROTECTION_HIBP_PER_MINUTE: int = Field(10, ge=1, le=60_000)
    """requests a minute that the subscription of this key allows, all workers together"""
    PROTECTION_HIBP_URL: Annotated[str, Url(("http", "https"))] = (
        "https://haveibeenpwned.com/api/v3"
    )
    """address of its API"""
    PROTECTION_PASSWORDS_URL: Annotated[str, Url(("http", "https"))] = (
        "https://api.pwnedpasswords.com"
    )
    """address of the API of leaked passwords, which is asked when somebody checks a password"""
    PROTECTION_BROKERS_FILE: str = ""
    """YAML file of the data brokers, see docs/protection.md; empty: a few samples, which lead
    nowhere"""
    PROTECTION_LOCAL_BROKERS: bool = False
    """let brokers have addresses that are not public, as in tests and demos"""

    def conflicts(self) -> Iterator[Problem]:
        """The key goes over encrypted connections only, or to this machine."""
        if self.PROTECTION_HIBP_KEY and lacks_tls(self.PROTECTION_HIBP_URL):
            message = "would send PROTECTION_HIBP_KEY unencrypted: use an https:// URL"
            yield Problem("PROTECTION_HIBP_URL", message)
