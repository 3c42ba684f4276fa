"""Declare what keeps events past their retention: rows of other apps that refer to them."""

from collections.abc import Sequence
from typing import ClassVar

from django.db.models import Model

from tailrace.events.discovery import subclasses


class KeepEvents:
    """Keeps an event, whatever its age, while a row of one of `models` refers to it by `event`.

    Write a subclass in `retention.py` of any installed app. Each of the models needs an index that
    begins with its column `event_id`.
    """

    models: ClassVar[Sequence[type[Model]]] = ()


def tables_that_keep_events() -> list[str]:
    """Return the tables whose rows keep the event in their column `event_id`."""
    return [model._meta.db_table for cls in subclasses(KeepEvents) for model in cls.models]
