"""The backend that an event is about, and the one that reported it."""

from django.conf import settings

from tailrace.events.publish import Recorded

PAST = "past"


def source_of(backend: str, epoch: int, *, past: bool = False) -> str:
    """Return the source of what a backend's log reported in an epoch, or before the first read."""
    return f"obs:{backend}:{PAST if past else epoch}"


def is_past(event: Recorded) -> bool:
    """Whether it is from before the first read of its backend's log."""
    return event.source.startswith("obs:") and event.source.endswith(f":{PAST}")


def backend_of(event: Recorded) -> str:
    """Return the backend's name, e.g. `main` for an event of the source `obs:main:1`.

    For an event from another source it is the only configured backend, or "" if there are none
    or several.
    """
    kind, _, rest = event.source.partition(":")
    if kind == "obs" and rest:
        return rest.rpartition(":")[0] or rest
    return _only_backend()


def reporter_of(event: Recorded) -> str:
    """Return the name of the backend whose own log or bus reported the event; "" for all others.

    What changes something at a backend takes these events alone: anyone with a token for the API
    can say something about it.
    """
    kind, _, rest = event.source.partition(":")
    if kind == "bus" and rest:  # a bus has the events of one backend
        return _only_backend()
    return backend_of(event) if kind == "obs" and rest else ""


def _only_backend() -> str:
    return next(iter(settings.OBS_BACKENDS)) if len(settings.OBS_BACKENDS) == 1 else ""
