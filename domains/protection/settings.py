import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from tailrace.environment.folders import private_files, var_dir
from tailrace.environment.insecure import lacks_tls
from tailrace.environment.settings import AppSettings, Problem
from tailrace.environment.types import Folder, Key, Rule, Url


def _sent_unencrypted(own: AppSettings, key: str, url: str) -> Iterator[Problem]:
    """Reject a URL that would send the key unencrypted, except to this machine."""
    if getattr(own, key) and lacks_tls(getattr(own, url)):
        yield Problem(url, f"would send {key} unencrypted: use an https:// URL")


class FilesSettings(AppSettings):
    """The folder of reports and recordings."""

    prefixes = ("PROTECTION_FOLDER",)

    PROTECTION_FOLDER: Annotated[Path, Folder()] = Field(
        default_factory=lambda: var_dir() / "protection", examples=["var/protection"]
    )
    """folder of reports and recordings, the same for all web processes and workers"""

    def storages(self) -> dict[str, Any]:
        """Return the storage of reports and recordings, as an entry of STORAGES."""
        return {"protection": private_files(self.PROTECTION_FOLDER)}


class PropertySettings(AppSettings):
    """Watched properties, and the source of their public records."""

    prefixes = ("PROTECTION_",)

    PROTECTION_MAX_PROPERTIES_PER_USER: int = Field(500, ge=1, le=10_000)
    """maximum number of watched properties of an account"""
    PROTECTION_SODA_URL: Annotated[str, Url(("http", "https"))] = ""
    """server of the public records of properties (SODA), https://data.cityofnewyork.us for New York
    City; empty: properties are not scanned"""
    PROTECTION_SODA_TOKEN: str = ""
    """app token of that server; without one it allows few requests"""
    PROTECTION_SODA_PER_MINUTE: int = Field(300, ge=1, le=60_000)
    """requests per minute to that server, for all workers together"""

    def conflicts(self) -> Iterator[Problem]:
        return _sent_unencrypted(self, "PROTECTION_SODA_TOKEN", "PROTECTION_SODA_URL")


class ReportsSettings(AppSettings):
    """Reports as PDF."""

    prefixes = ("PROTECTION_REPORTS_", "PROTECTION_MAX_REPORTS_")

    PROTECTION_REPORTS_PER_DAY: int = Field(5, ge=1, le=1000)
    """reports that an account may request per day"""
    PROTECTION_MAX_REPORTS_PER_USER: int = Field(200, ge=1, le=10_000)
    """maximum number of reports that are kept of an account; the oldest are deleted"""


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
    """YAML file of the data brokers, see docs/reference/platform/protection.md; empty: there are
    none"""
    PROTECTION_LOCAL_BROKERS: bool = False
    """allow brokers at addresses that are not public, for tests and demos"""

    def conflicts(self) -> Iterator[Problem]:
        return _sent_unencrypted(self, "PROTECTION_HIBP_KEY", "PROTECTION_HIBP_URL")


class VoicesSettings(AppSettings):
    """The comparison of voices."""

    prefixes = ("PROTECTION_VOICE_", "PROTECTION_MAX_RECORDINGS_")

    PROTECTION_VOICE_MODEL: str = ""
    """ONNX file of a speaker-embedding model, see docs/reference/platform/protection.md; empty:
    voices are compared only by their spectra"""
    PROTECTION_VOICE_THRESHOLD: float = Field(0.5, ge=0, lt=1)
    """minimum cosine similarity for a match, with a model"""
    PROTECTION_VOICE_SECONDS: int = Field(20, ge=1, le=600)
    """time limit in seconds for comparing one recording"""
    PROTECTION_MAX_RECORDINGS_PER_USER: int = Field(200, ge=1, le=10_000)
    """maximum number of recordings of an account"""
