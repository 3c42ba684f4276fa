from typing import Annotated

from pydantic import Field

from tailrace.environment.settings import AppSettings
from tailrace.environment.types import Urls


class SourcesSettings(AppSettings):
    """The harvest of sources."""

    prefixes = ("RECORDS_LOCAL_SOURCES", "RECORDS_REQUESTS_PER_SECOND")

    RECORDS_LOCAL_SOURCES: Annotated[list[str], Urls(("http", "https"))] = Field(default=[])
    """addresses (scheme, host, port) of sources that need not be public or encrypted, such as
    sources in your own network"""
    RECORDS_REQUESTS_PER_SECOND: float = Field(5.0, ge=0.1, le=1000)
    """maximum number of requests per second to one host of sources, by all workers together"""
