from pydantic import PositiveInt

from tailrace.environment.settings import AppSettings


class SubscriptionsSettings(AppSettings):
    """How long is kept what people were notified about."""

    NOTIFICATIONS_RETENTION_DAYS: PositiveInt = 365
    """days that notifications, inboxes and digests are kept"""
