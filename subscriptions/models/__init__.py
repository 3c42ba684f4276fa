from tailrace.subscriptions.models.device import Device
from tailrace.subscriptions.models.digest import Digest, DigestItem
from tailrace.subscriptions.models.endpoint import Delivery, Endpoint
from tailrace.subscriptions.models.feed import Feed, FeedItem
from tailrace.subscriptions.models.notification import InboxItem, Notification
from tailrace.subscriptions.models.person import GroupAddress, PhoneCode, Preferences
from tailrace.subscriptions.models.plan import Plan, PlanChange, PlanJob, PlanSubscription
from tailrace.subscriptions.models.subscription import Block, EventSubscription
from tailrace.web.models import ApiToken

__all__ = [
    "ApiToken",
    "Block",
    "Delivery",
    "Device",
    "Digest",
    "DigestItem",
    "Endpoint",
    "EventSubscription",
    "Feed",
    "FeedItem",
    "GroupAddress",
    "InboxItem",
    "Notification",
    "PhoneCode",
    "Plan",
    "PlanChange",
    "PlanJob",
    "PlanSubscription",
    "Preferences",
]
