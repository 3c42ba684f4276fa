"""Events stay for as long as somebody's notification of them."""

from tailrace.jobs.maintenance.retention import KeepEvents
from tailrace.subscriptions.models import DigestItem, FeedItem, InboxItem, Notification


class KeepNotifiedEvents(KeepEvents):
    models = (Notification, InboxItem, FeedItem, DigestItem)
