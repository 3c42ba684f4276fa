"""Template filters for the options of a user, and for the kinds of events."""

from urllib.parse import urlencode

from django import template
from django.urls import reverse

from tailrace.events.catalog.topics import family_of, family_title
from tailrace.events.types import all_types, find_type
from tailrace.subscriptions.notifications.preferences.options import Option, describe
from tailrace.subscriptions.types.roles import role_words

KIND_STYLES = 6
"""The number of styles of kinds of events, `me-kind-0` and so on."""

register = template.Library()
register.filter("describe", describe)
register.filter("role_words", role_words)


@register.filter
def editor_url(option: Option) -> str:
    """Return the URL of the page on which this option is edited."""
    query = {"type": option.topic.name, "role": option.role, "channel": option.channel}
    return f"{reverse('my_choice')}?{urlencode(query)}"


@register.filter
def event_kind(name: str) -> str:
    """Return the kind of the event type with this name, for its label: the title of its family,
    such as `Requests and reviews`; for an unknown type, the name of its app."""
    event_type = find_type(name)
    if event_type is None:
        return name.partition(".")[0].capitalize()
    return family_title(family_of(event_type), event_type)


@register.filter
def kind_style(name: str) -> int:
    """Return the number of the style of an event type, which all types of an app have in common."""
    apps = sorted({each.name.partition(".")[0] for each in all_types()})
    app = name.partition(".")[0]
    return apps.index(app) % KIND_STYLES if app in apps else 0
