"""Declare models of other apps whose rows keep events past their retention."""

from collections.abc import Sequence
from typing import ClassVar

from django.db.models import Model


class KeepEvents:
    """Keeps events of any age while a row of one of `models` refers to them by `event`.

    Write a subclass in `retention.py` of any installed app. Each model needs an index that begins
    with its column `event_id`.
    """

    models: ClassVar[Sequence[type[Model]]] = ()
