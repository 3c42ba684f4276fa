"""The signal `published`: sent in the publishing transaction, with `events`, a list of Recorded."""

from collections.abc import Callable, Sequence
from typing import Any

from django.dispatch import Signal

from tailrace.events.types import EventType

published = Signal()


def on_published(*types: type[EventType]) -> Callable[[Callable[[Any], None]], Any]:
    """Decorate a function that takes a list of Recorded: whenever events of these types are
    published, it gets them inside the publishing transaction."""

    def decorated(function: Callable[[Any], None]) -> Callable[[Any], None]:
        def receive(events: Sequence[Any], **kwargs: Any) -> None:
            if own := [event for event in events if event.event_type in types]:
                function(own)

        uid = f"{function.__module__}.{function.__qualname__}"
        published.connect(receive, weak=False, dispatch_uid=uid)
        return function

    return decorated
