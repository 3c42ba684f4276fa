"""matrix: words and addresses of a person's choices, for templates."""

from urllib.parse import urlencode

from django import template
from django.urls import reverse

from subscriptions.matrix import Spot, in_words

register = template.Library()
register.filter("said", in_words)


@register.filter
def plain(role: str) -> str:
    """Return a role as people say it."""
    return role.replace("_", " ")


@register.filter
def editor(spot: Spot) -> str:
    """Return the address of the editor of this choice."""
    asked = {"type": spot.topic.name, "role": spot.role, "channel": spot.channel}
    return f"{reverse('my_choice')}?{urlencode(asked)}"
