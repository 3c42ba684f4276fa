from pydantic import Field

from tailrace.environment.settings import AppSettings


class ReportsSettings(AppSettings):
    """Reports as PDF."""

    prefixes = ("PROTECTION_REPORTS_", "PROTECTION_MAX_REPORTS_")

    PROTECTION_REPORTS_PER_DAY: int = Field(5, ge=1, le=1000)
    """reports that an account may request per day"""
    PROTECTION_MAX_REPORTS_PER_USER: int = Field(200, ge=1, le=10_000)
    """maximum number of reports that are kept of an account; the oldest are deleted"""
