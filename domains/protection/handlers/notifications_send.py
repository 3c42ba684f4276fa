"""Publish the events of new alerts."""

from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from tailrace.domains.protection.alerts.raising import NOTIFICATIONS
from tailrace.domains.protection.event_types import alert_event
from tailrace.domains.protection.handlers.account_handler import AccountHandler
from tailrace.domains.protection.models import Alert
from tailrace.events.publish import publish
from tailrace.jobs.handler import ClaimedJob

MOST = 500


class SendNotifications(AccountHandler):
    """Notify a user of new alerts, by the channels that the user chose."""

    name = NOTIFICATIONS

    def handle(self, job: ClaimedJob) -> Any:
        announced = 0
        while count := _announce_batch(job.payload.account):
            announced += count
        return {"alerts": announced}


def _announce_batch(account: int) -> int:
    """Publish the account's next alerts and mark them, in one transaction; return their number."""
    with transaction.atomic():
        unannounced = Alert.objects.filter(user=account, announced_at__isnull=True)
        alerts = list(unannounced.order_by("pk").select_for_update()[:MOST])
        publish([alert_event(alert) for alert in alerts])
        unannounced.filter(pk__in=[alert.pk for alert in alerts]).update(announced_at=Now())
    return len(alerts)
