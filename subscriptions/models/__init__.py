from subscriptions.models.device import Device
from subscriptions.models.digest import Digest, DigestItem
from subscriptions.models.endpoint import Delivery, Endpoint
from subscriptions.models.feed import Feed, FeedItem
from subscriptions.models.notification import InboxItem, Notification
from subscriptions.models.person import GroupAddress, PhoneCode, Preferences
from subscriptions.models.plan import Plan, PlanChange, PlanJob, PlanSubscription
from subscriptions.models.subscription import Block, EventSubscription
from web.models import ApiToken

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
