"""audit: what operators did, in Django's admin log, one entry per object."""

from collections.abc import Iterable
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model


def record(user: Any, model: type[Model], did: str, objects: Iterable[tuple[Any, str]]) -> None:
    """Log that `user` did this to the objects, given as (primary key, words for it)."""
    kind = ContentType.objects.get_for_model(model)
    LogEntry.objects.bulk_create(
        LogEntry(
            user_id=user.pk,
            content_type=kind,
            object_id=str(pk),
            object_repr=words[:200],
            action_flag=CHANGE,
            change_message=did,
        )
        for pk, words in objects
    )
