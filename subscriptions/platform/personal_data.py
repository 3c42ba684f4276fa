"""The personal data that subscriptions store."""

from django.contrib.auth.models import User

from tailrace.subscriptions.channels.webhook.operations import endpoints
from tailrace.subscriptions.models import (
    Block,
    Delivery,
    Device,
    Digest,
    Endpoint,
    EventSubscription,
    Feed,
    FeedItem,
    InboxItem,
    Notification,
    PhoneCode,
    PlanSubscription,
    Preferences,
)
from tailrace.web.accounts.personal_data import PersonalData


class Webhooks(PersonalData):
    """Webhooks with their secrets, their waiting deliveries and the log of deliveries."""

    rows = {Delivery: "endpoint__user"}

    def delete(self, user: User) -> int:
        if deleted := super().delete(user):
            return deleted
        endpoint = Endpoint.objects.filter(user=user).first()
        if endpoint is None:
            return 0
        endpoints.delete(endpoint)
        return 1


class Subscriptions(PersonalData):
    """Subscriptions, time zone, phone number, blocked users, feeds, browsers with push, the inbox,
    digests, and the list of your notifications."""

    rows = {
        EventSubscription: "user",
        Preferences: "user",
        PhoneCode: "user",
        Block: "user",
        Feed: "user",
        Device: "user",
        FeedItem: "user",
        InboxItem: "user",
        Digest: "user",
        Notification: "user",
    }


class BlocksByOthers(PersonalData):
    """Blocks by other users, who are not notified about your actions."""

    rows = {Block: "blocked"}


class PlanSubscriptions(PersonalData):
    """Your plan, with its schedules and the record of its changes."""

    rows = {PlanSubscription: "account"}
