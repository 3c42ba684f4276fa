"""Record actions of operators in Django's admin log: one entry for one object or for many. In a
project without Django's admin, they are only logged."""

from collections.abc import Iterable
from typing import Any

import structlog
from django.apps import apps
from django.db.models import Model

log = structlog.get_logger(__name__)

NAMES_LIMIT = 1000
"""The maximum length of the names of many objects in one entry, in characters."""
REQUESTS = ("requested", "requested again: merged into this one")
"""Actions of programs, many a day: these entries have the retention of failed jobs."""


def record(
    user: Any,
    model: type[Model],
    action: str,
    objects: Iterable[tuple[Any, str]],
    chosen_by: str = "",
) -> None:
    """Log the action of `user` on the objects, each a tuple (primary key, description), as one
    entry. For several objects the entry has their number, their names and `chosen_by`, the filter
    by which they were selected, if any."""
    objects = list(objects)
    if len(objects) > 1:
        names = ", ".join(description for _pk, description in objects)[:NAMES_LIMIT]
        what = f"{chosen_by} ({names})" if chosen_by else names
        record_many(user, model, action, len(objects), what)
    elif objects:
        [(pk, description)] = objects
        _log(user, model, description, action, object_id=str(pk))


def _log(user: Any, model: type[Model], what: str, message: str, **rest: Any) -> int:
    if not apps.is_installed("django.contrib.admin"):
        log.info("operator.acted", user=user.pk, model=model._meta.label, what=what, action=message)
        return 0
    from django.contrib.admin.models import CHANGE, LogEntry
    from django.contrib.contenttypes.models import ContentType

    row = LogEntry.objects.create(
        user_id=user.pk,
        content_type=ContentType.objects.get_for_model(model),
        object_repr=what[:200],
        action_flag=CHANGE,
        change_message=message,
        **rest,
    )
    return int(row.pk)


def record_many(
    user: Any, model: type[Model], action: str, number: int, what: str, entry: int | None = None
) -> int:
    """Log the action of `user` on `number` objects, which `what` describes, as one entry, or update
    the entry with the id `entry`; return its id."""
    noun = model._meta.verbose_name if number == 1 else model._meta.verbose_name_plural
    message = f"{action} {number:,} {noun}: {what}"
    if entry:
        from django.contrib.admin.models import LogEntry

        LogEntry.objects.filter(pk=entry).update(change_message=message)
        return entry
    return _log(user, model, what, message)
