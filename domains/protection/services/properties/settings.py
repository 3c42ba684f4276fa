from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from tailrace.environment.insecure import lacks_tls
from tailrace.environment.settings import AppSettings, Problem
from tailrace.environment.types import Url


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
        """Reject a URL that would send the token unencrypted, except to this machine."""
        if self.PROTECTION_SODA_TOKEN and lacks_tls(self.PROTECTION_SODA_URL):
            message = "would send PROTECTION_SODA_TOKEN unencrypted: use an https:// URL"
            yield Problem("PROTECTION_SODA_URL", message)
