from pydantic import Field

from tailrace.environment.settings import AppSettings


class PlansSettings(AppSettings):
    """Plans: what accounts pay for."""

    prefixes = ("PLAN_",)

    PLAN_GRACE_DAYS: int = Field(7, ge=0, le=365)
    """days that the jobs of a plan continue after a payment is past due"""
