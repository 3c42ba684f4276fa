"""Record what operators do in Django's admin log: one entry per object, or one for many."""

from collections.abc import Iterable
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model

REQUESTS = ("requested", "requested again: merged into this one")
"""Actions of programs, many a day: these entries are pruned as old as failed jobs are."""


def record(user: Any, model: type[Model], action: str, objects: Iterable[tuple[Any, str]]) -> None:
    """Log the action of `user` on the objects, each given as (primary key, description)."""
    content_type = ContentType.objects.get_for_model(model)
    LogEntry.objects.bulk_create(
        LogEntry(
            user_id=user.pk,
            content_type=content_type,
            object_id=str(pk),
            object_repr=description[:200],
            action_flag=CHANGE,
            change_message=action,
        )
        for pk, description in objects
    )


def record_many(
    user: Any, model: type[Model], action: str, number: int, what: str, entry: int | None = None
) -> int:
    """Log the action of `user` on so many objects in one entry; return the entry's id.

    `what` describes them, e.g. by the filter. `entry`: write this one again, with the new number.
    """
    noun = model._meta.verbose_name if number == 1 else model._meta.verbose_name_plural
    message = f"{action} {number:,} {noun}: {what}"
    if entry is not None:
        LogEntry.objects.filter(pk=entry).update(change_message=message)
        return entry
    row = LogEntry.objects.create(
        user_id=user.pk,
        content_type=ContentType.objects.get_for_model(model),
        object_repr=what[:200],
        action_flag=CHANGE,
        change_message=message,
    )
    return int(row.pk)
