"""The backend that an event comes from: its metadata can be requested there."""

from django.conf import settings

from events.publish import Recorded


def backend_of(event: Recorded) -> str:
    """Return the backend's name, e.g. `main` for an event of the source `obs:main:1`.

    For an event from another source it is the only configured backend, or "" if there are none
    or several.
    """
    kind, _, rest = event.source.partition(":")
    if kind == "obs" and rest:
        return rest.rpartition(":")[0] or rest
    return next(iter(settings.OBS_BACKENDS)) if len(settings.OBS_BACKENDS) == 1 else ""
