"""origin: which backend an event comes from, and so where its metadata can be asked for."""

from django.conf import settings

from events.publish import Recorded


def backend_of(event: Recorded) -> str:
    """Return the backend's name: `obs:main:1` is main's; what has no backend is the only one's.

    Empty when the event names none and several, or none, are configured.
    """
    kind, _, rest = event.source.partition(":")
    if kind == "obs" and rest:
        return rest.rpartition(":")[0] or rest
    return next(iter(settings.OBS_BACKENDS)) if len(settings.OBS_BACKENDS) == 1 else ""
