"""Events stay for as long as somebody's notification of them."""

from jobs.maintenance.retention import KeepEvents
from subscriptions.models import DigestItem, FeedItem, InboxItem, Notification


class KeepNotifiedEvents(KeepEvents):
    models = (Notification, InboxItem, FeedItem, DigestItem)
