"""The admin of subscriptions, one module per part."""

from tailrace.subscriptions.admin import notifications, plan_subscriptions, plans

__all__ = ["notifications", "plan_subscriptions", "plans"]
