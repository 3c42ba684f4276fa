"""What subscriptions tell on an event's page: who heard of it and why, and why somebody did not."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest

from events.models import Event
from jobs.models import Job
from jobs.panels import EventPanel
from subscriptions import channels
from subscriptions.explain import explain
from subscriptions.models import Notification
from subscriptions.recall import recall

MOST = 50


@dataclass(slots=True)
class Told:
    """A recipient, the reason, and the deliveries: one job per channel and address."""

    who: str
    role: str
    jobs: list[Job] = field(default_factory=list)


class WhoHeard(EventPanel):
    title = "Who heard of it"
    template = "subscriptions/admin/who_heard.html"
    permission = "subscriptions.view_notification"

    def context(self, event: Event, request: HttpRequest) -> dict[str, Any]:
        rows = Notification.objects.filter(event=event).select_related("user", "group")
        found = list(rows.order_by("id")[: MOST + 1])
        return {
            "told": _told(event, found[:MOST]),
            "more": len(found) > MOST,
            "event": event,
        } | _asked(event, str(request.GET.get("who", "")).strip())


def _told(event: Event, rows: Iterable[Notification]) -> list[Told]:
    by_recipient = {
        f"user:{row.user_id}" if row.user_id else f"group:{row.group_id}": Told(
            str(row.user or row.group), row.role.replace("_", " ")
        )
        for row in rows
    }
    names = {channel.name: key for key, channel in channels.everything().items()}
    jobs = Job.objects.filter(event=event, handler__in=names).defer("payload", "result")
    for job in jobs.order_by("handler", "id")[: MOST * len(names)]:
        job.channel = names[job.handler]  # type: ignore[attr-defined]
        told = by_recipient.get(":".join(job.routing_key.split(":")[:2]))
        if told:
            told.jobs.append(job)
    return list(by_recipient.values())


def _asked(event: Event, login: str) -> dict[str, Any]:
    """Explain the event to the user of this login, if one was given."""
    if not login:
        return {}
    user = User.objects.filter(username=login).first()
    if user is None:
        return {"who": login, "unknown": True}
    return {"who": login, "explained": explain(recall(event), user)}
