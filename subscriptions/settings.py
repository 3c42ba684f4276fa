from pydantic import PositiveInt

from tailrace.environment.settings import AppSettings


class SubscriptionsSettings(AppSettings):
    """How long notifications are kept."""

    NOTIFICATIONS_RETENTION_DAYS: PositiveInt = 365
    """days for which notifications, inbox items and digests are kept"""
