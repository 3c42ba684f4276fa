from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from tailrace.environment.insecure import lacks_tls
from tailrace.environment.settings import AppSettings, Problem
from tailrace.environment.types import Url

DATASET = r"^[a-z0-9]{4}-[a-z0-9]{4}$"


class PropertySettings(AppSettings):
    """Watched properties, and the source of their public records."""

    prefixes = ("PROTECTION_",)

    PROTECTION_MAX_PROPERTIES_PER_USER: int = Field(500, ge=1, le=10_000)
    """maximum number of watched properties of an account"""
    PROTECTION_MAX_DOCUMENTS_PER_PROPERTY: int = Field(1000, ge=10, le=10_000)
    """maximum number of documents of a property that are watched; if there are more, the newest"""
    PROTECTION_LIEN_CRITICAL_AMOUNT: int = Field(100_000, ge=0)
    """amount in dollars from which a new lien is critical; a smaller one is a warning"""
    PROTECTION_SODA_URL: Annotated[str, Url(("http", "https"))] = ""
    """server of the public records of properties (SODA), https://data.cityofnewyork.us for New York
    City; empty: properties are not scanned"""
    PROTECTION_SODA_TOKEN: str = ""
    """app token of that server; without one it allows few requests"""
    PROTECTION_SODA_PER_MINUTE: int = Field(300, ge=1, le=60_000)
    """requests per minute to that server, for all workers together"""
    PROTECTION_SODA_LEGALS: str = Field("8h5j-fqxa", pattern=DATASET)
    """dataset of the documents' lots and addresses"""
    PROTECTION_SODA_MASTER: str = Field("bnx9-e6tj", pattern=DATASET)
    """dataset of the documents' types, dates and amounts"""
    PROTECTION_SODA_PARTIES: str = Field("636b-3b5g", pattern=DATASET)
    """dataset of the documents' parties"""

    def conflicts(self) -> Iterator[Problem]:
        """Reject a URL that would send the token unencrypted, except to this machine."""
        if self.PROTECTION_SODA_TOKEN and lacks_tls(self.PROTECTION_SODA_URL):
            message = "would send PROTECTION_SODA_TOKEN unencrypted: use an https:// URL"
            yield Problem("PROTECTION_SODA_URL", message)
