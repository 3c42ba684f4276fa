from typing import Annotated

from pydantic import Field

from tailrace.environment.settings import AppSettings
from tailrace.environment.types import Urls


class SourcesSettings(AppSettings):
    """Sources that records are harvested from."""

    prefixes = ("RECORDS_LOCAL_SOURCES", "RECORDS_REQUESTS_PER_SECOND")

    RECORDS_LOCAL_SOURCES: Annotated[list[str], Urls(("http", "https"))] = Field(default=[])
    """addresses (scheme, host, port) of sources that need not be public or encrypted, such as those
    of your own network"""
    RECORDS_REQUESTS_PER_SECOND: float = Field(5.0, ge=0.1, le=1000)
    """requests a second to one host of sources, all workers together"""
