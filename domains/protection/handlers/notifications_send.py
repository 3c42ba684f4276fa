"""Publish the events of new alerts."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from tailrace.domains.protection.event_types import alert_event
from tailrace.domains.protection.models import Alert
from tailrace.events.publish import publish
from tailrace.jobs.handler import ClaimedJob, Handler
from tailrace.subscriptions.plans.payload import AccountPayload

MOST = 500


class SendNotifications(Handler):
    """Notify a user of new alerts, by the channels that the user chose."""

    name = "protection.notifications_send"
    Payload = AccountPayload
    fair = True
    request_permission = "tailrace_jobs.add_job"

    def payload_lane(self, payload: Mapping[str, Any]) -> str:
        return str(payload["account"])

    def handle(self, job: ClaimedJob) -> Any:
        announced = 0
        while count := self._announce_batch(job.payload.account):
            announced += count
        return {"alerts": announced}

    def _announce_batch(self, account: int) -> int:
        """Publish the account's next alerts and mark them as announced in one transaction; return
        their number."""
        with transaction.atomic():
            unannounced = Alert.objects.filter(user=account, announced_at__isnull=True)
            alerts = list(unannounced.order_by("pk").select_for_update()[:MOST])
            publish([alert_event(alert) for alert in alerts])
            unannounced.filter(pk__in=[alert.pk for alert in alerts]).update(announced_at=Now())
        return len(alerts)
