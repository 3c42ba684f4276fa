"""The panel of an event's page that lists its recipients, and explains a user's notifications."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest

from tailrace.events.models import Event
from tailrace.events.publish import Recorded
from tailrace.jobs.models import Job
from tailrace.jobs.platform.pages.panel import EventPanel
from tailrace.subscriptions.models import Notification
from tailrace.subscriptions.notifications.audience.explain import explain
from tailrace.subscriptions.types.channel import all_channels
from tailrace.subscriptions.types.recipient import RecipientKey
from tailrace.subscriptions.types.roles import role_words

MAX_RECIPIENTS = 50


@dataclass(slots=True)
class NotifiedRecipient:
    """A recipient, its role, and its deliveries: one job per channel and address."""

    name: str
    role: str
    jobs: list[Job] = field(default_factory=list)


class WhoWasNotified(EventPanel):
    title = "Who was notified"
    template = "tailrace/subscriptions/admin/notified.html"
    permission = "tailrace_subscriptions.view_notification"

    def context(self, event: Event, request: HttpRequest) -> dict[str, Any]:
        rows = Notification.objects.filter(event=event).select_related("user", "group")
        notifications = list(rows.order_by("id")[: MAX_RECIPIENTS + 1])
        return {
            "recipients": _recipients(event, notifications[:MAX_RECIPIENTS]),
            "more": len(notifications) > MAX_RECIPIENTS,
            "event": event,
        } | _explanations(event, str(request.GET.get("who", "")).strip())


def _recipients(event: Event, notifications: Iterable[Notification]) -> list[NotifiedRecipient]:
    recipients: dict[RecipientKey | None, NotifiedRecipient] = {
        RecipientKey(row.user_id, row.group_id): NotifiedRecipient(
            str(row.user or row.group), role_words(row.role)
        )
        for row in notifications
    }
    channels = {channel.name: key for key, channel in all_channels().items()}
    jobs = Job.objects.filter(event=event, handler__in=channels).defer("payload", "result")
    for job in jobs.order_by("handler", "id")[: MAX_RECIPIENTS * len(channels)]:
        job.channel = channels[job.handler]  # type: ignore[attr-defined]
        if recipient := recipients.get(RecipientKey.parse(job.routing_key)):
            recipient.jobs.append(job)
    return list(recipients.values())


def _explanations(event: Event, login: str) -> dict[str, Any]:
    """Return the context that explains to the user `login` why they were notified or not."""
    if not login:
        return {}
    user = User.objects.filter(username=login).first()
    if user is None:
        return {"who": login, "unknown": True}
    return {"who": login, "explanations": explain(Recorded.from_model(event), user)}
