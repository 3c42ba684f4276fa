"""Record what operators do in Django's admin log, one entry per object."""

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
