"""Template filters for the options of a user."""

from urllib.parse import urlencode

from django import template
from django.urls import reverse

from tailrace.subscriptions.notifications.preferences.options import Option, describe
from tailrace.subscriptions.types.roles import role_words

register = template.Library()
register.filter("describe", describe)
register.filter("role_words", role_words)


@register.filter
def editor_url(option: Option) -> str:
    """Return the URL of the page on which this option is edited."""
    query = {"type": option.topic.name, "role": option.role, "channel": option.channel}
    return f"{reverse('my_choice')}?{urlencode(query)}"
