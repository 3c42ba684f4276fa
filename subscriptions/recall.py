from dataclasses import fields

from events.models import Event
from events.publish import Recorded

_FIELDS = [one.name for one in fields(Recorded)]


def recall(event: Event) -> Recorded:
    """Return the stored event in the form in which handlers see it."""
    return Recorded(**{name: getattr(event, name) for name in _FIELDS})
