"""The page that explains why a user was notified of an event, with a button per channel that
switches off notifications of this event type."""

from datetime import datetime, timedelta

from django.conf import settings
from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from tailrace.db.query import database_now
from tailrace.events.catalog.topics import quoted_title, type_title
from tailrace.events.models import Event
from tailrace.events.privacy.visibility import may_read_now_or_later
from tailrace.events.publish import Recorded
from tailrace.subscriptions.models import Notification
from tailrace.subscriptions.notifications.audience.explain import explain
from tailrace.subscriptions.notifications.preferences import options
from tailrace.subscriptions.notifications.preferences.mute import mute as switch_off
from tailrace.subscriptions.notifications.preferences.mute import unmute
from tailrace.subscriptions.notifications.rendering.event_summary import summarize
from tailrace.subscriptions.pages.templatetags.tailrace_subscription_options import editor_url
from tailrace.subscriptions.types.roles import role_words
from tailrace.web.accounts import budget
from tailrace.web.pages.frame import PersonRequest, person_page, show

COST = 5
"""An explanation counts as this number of requests, since it calls the roles."""


@person_page("GET")
def why(request: PersonRequest, id: int) -> HttpResponse:
    """Show the event, whether each channel has sent it, and what the settings are now."""
    event, role = _find(request, id)
    budget.spend(request.user.pk, cost=COST - 1)
    channels = [
        {
            "explanation": explanation,
            "option": option,
            "editor": editor_url(option) if option else "",
        }
        for explanation in explain(event, request.user)
        if (option := _option(request, event, explanation.role or role, explanation.channel))
        or explanation.notified
        or explanation.sent
    ]
    context = {
        "id": id,
        "event": summarize(request.user, [event]).get(id),
        "title": type_title(event.event_type) if event.event_type else event.type,
        "role": role_words(role),
        "channels": channels,
        "unsent": "not sent" if event.recorded_at > _jobs_are_kept_since() else "no record",
        "undo": request.GET.get("undo", "")[:1000],
    }
    return show(request, "tailrace/subscriptions/pages/why.html", context)


@person_page("POST")
def mute(request: PersonRequest, id: int) -> HttpResponse:
    """Switch a channel off for the type of this event in one role, or undo it."""
    event, _role = _find(request, id)
    if undo := request.POST.get("undo", ""):
        if unmute(request.user, undo):
            messages.success(request, "The previous setting was restored.")
        else:
            messages.error(request, "This can no longer be undone. Change the setting below.")
        return redirect("my_why", id)
    role, channel = request.POST.get("role", ""), request.POST.get("channel", "")
    if _option(request, event, role, channel) is None:
        raise Http404
    undo = switch_off(request.user, channel, [(event.type, role)])
    topic = f"{quoted_title(event.type)} by {channel}, as {role_words(role)}"
    messages.success(request, f"You will no longer be notified about {topic}.")
    query = f"?undo={undo}" if undo else ""
    return redirect(reverse("my_why", args=[id]) + query)


def _jobs_are_kept_since() -> datetime:
    return database_now() - timedelta(days=settings.JOBS_RETENTION_DAYS)


def _find(request: PersonRequest, id: int) -> tuple[Recorded, str]:
    """Return the event and the role in which the user was notified of it, else raise Http404, also
    if the user may no longer read the event. While the readers of the event are unknown, the page
    shows only the sent messages."""
    groups = list(request.user.groups.values_list("pk", flat=True))
    recipients = Q(user=request.user) | Q(group__in=groups)
    notification = Notification.objects.filter(recipients, event=id).order_by("pk").first()
    row = Event.objects.filter(pk=id).first() if notification else None
    if notification is None or row is None:
        raise Http404
    event = Recorded.from_model(row)
    if id not in set().union(*may_read_now_or_later(request.user, [event])):
        raise Http404
    return event, notification.role


def _option(
    request: PersonRequest, event: Recorded, role: str, channel: str
) -> options.Option | None:
    try:
        return options.find_option(request.user, event.type, role, channel)
    except options.UnknownTopic:
        return None
