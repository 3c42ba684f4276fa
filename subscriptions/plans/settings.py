from pydantic import Field

from tailrace.environment.settings import AppSettings


class PlansSettings(AppSettings):
    """Settings of plans."""

    prefixes = ("PLAN_",)

    PLAN_GRACE_DAYS: int = Field(7, ge=0, le=365)
    """days for which the jobs of a plan continue after a payment is past due"""
