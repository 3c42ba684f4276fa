"""The source of an event: the backend that it is about, and the backend that reported it."""

from django.conf import settings

from tailrace.events.publish import Recorded

PAST = "past"


def source_of(backend: str, epoch: int, *, past: bool = False) -> str:
    """Return the source of events of an epoch of a backend's log, or from before the first read."""
    return f"obs:{backend}:{PAST if past else epoch}"


def is_past(event: Recorded) -> bool:
    """Return whether the event is from before the first read of its backend's log."""
    return event.source.startswith("obs:") and event.source.endswith(f":{PAST}")


def backend_of(event: Recorded) -> str:
    """Return the backend that the event is about: `main` for the source `obs:main:1`; for other
    sources, the only configured backend, or "" if there is not exactly one."""
    kind, _, rest = event.source.partition(":")
    if kind == "obs" and rest:
        return rest.rpartition(":")[0] or rest
    return _only_backend()


def reporter_of(event: Recorded) -> str:
    """Return the backend whose own log or bus reported the event; "" for other sources.

    Handlers that change something accept only events with a reporter, because anyone with an API
    token can record an event about a backend.
    """
    kind, _, rest = event.source.partition(":")
    if kind == "bus" and rest:  # a bus carries the events of one backend
        return _only_backend()
    return backend_of(event) if kind == "obs" and rest else ""


def _only_backend() -> str:
    return next(iter(settings.OBS_BACKENDS)) if len(settings.OBS_BACKENDS) == 1 else ""
