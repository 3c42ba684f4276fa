"""The page that explains why a user was notified of an event, with a button per channel that
switches off notifications of this event type."""

from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from tailrace.events.catalog.topics import quoted_title
from tailrace.events.models import Event
from tailrace.events.privacy.visibility import may_read
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
    """Show the event, and for each channel whether and why it was sent."""
    event = _find(request, id)
    budget.spend(request.user.pk, cost=COST - 1)
    channels = [
        {
            "explanation": explanation,
            "option": option,
            "editor": editor_url(option) if option else "",
        }
        for explanation in explain(event, request.user)
        if (option := _option(request, event, explanation.role, explanation.channel))
        or explanation.notified
    ]
    context = {
        "event": summarize(request.user, [event])[event.id],
        "channels": channels,
        "undo": request.GET.get("undo", "")[:1000],
    }
    return show(request, "tailrace/subscriptions/pages/why.html", context)


@person_page("POST")
def mute(request: PersonRequest, id: int) -> HttpResponse:
    """Switch a channel off for the type of this event in one role, or undo it."""
    event = _find(request, id)
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
    messages.success(request, f"You will no longer be notified of {topic}.")
    query = f"?undo={undo}" if undo else ""
    return redirect(reverse("my_why", args=[id]) + query)


def _find(request: PersonRequest, id: int) -> Recorded:
    """Return the event if the user was notified of it and may still read it, else raise Http404."""
    groups = list(request.user.groups.values_list("pk", flat=True))
    recipients = Q(user=request.user) | Q(group__in=groups)
    notifications = Notification.objects.filter(recipients, event=id)
    row = Event.objects.filter(pk=id).first() if notifications.exists() else None
    if row is None or row.pk not in may_read(request.user, [event := Recorded.from_model(row)]):
        raise Http404
    return event


def _option(
    request: PersonRequest, event: Recorded, role: str, channel: str
) -> options.Option | None:
    try:
        return options.find_option(request.user, event.type, role, channel)
    except options.UnknownTopic:
        return None
