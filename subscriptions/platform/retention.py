"""Keep events as long as a notification, inbox item, feed item or digest item refers to them."""

from tailrace.jobs.runtime.retention import KeepEvents
from tailrace.subscriptions.models import DigestItem, FeedItem, InboxItem, Notification


class KeepNotifiedEvents(KeepEvents):
    models = (Notification, InboxItem, FeedItem, DigestItem)
