"""The personal data that subscriptions store."""

from django.contrib.auth.models import User

from tailrace.subscriptions import models
from tailrace.subscriptions.channels.webhook.operations import endpoints
from tailrace.web.accounts.personal_data import PersonalData


class Webhooks(PersonalData):
    """Webhooks with their secrets, their waiting deliveries and the log of deliveries."""

    rows = {models.Delivery: "endpoint__user"}

    def delete(self, user: User) -> int:
        if deleted := super().delete(user):
            return deleted
        endpoint = models.Endpoint.objects.filter(user=user).first()
        if endpoint is None:
            return 0
        endpoints.delete(endpoint)
        return 1


class Subscriptions(PersonalData):
    """Subscriptions, time zone, phone number, blocked users, feeds, browsers with push, the inbox,
    digests, and the list of your notifications."""

    rows = {
        models.EventSubscription: "user",
        models.Preferences: "user",
        models.PhoneCode: "user",
        models.Block: "user",
        models.Feed: "user",
        models.Device: "user",
        models.FeedItem: "user",
        models.InboxItem: "user",
        models.Digest: "user",
        models.Notification: "user",
    }


class BlocksByOthers(PersonalData):
    """Blocks by other users, who are not notified about your actions."""

    rows = {models.Block: "blocked"}


class PlanSubscriptions(PersonalData):
    """Your plan, with its schedules and the record of its changes."""

    rows = {models.PlanSubscription: "account"}
