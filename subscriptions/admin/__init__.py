"""The admin of subscriptions, one module per part."""

from subscriptions.admin import notifications, plan_subscriptions, plans

__all__ = ["notifications", "plan_subscriptions", "plans"]
