"""Make and change sources, each change with an entry in the log of the admin."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from tailrace.domains.records.models import Source
from tailrace.domains.records.models.source import NAME
from tailrace.domains.records.source_upkeep.checks import problems
from tailrace.domains.records.sources.requests import request_pull, sync_schedules
from tailrace.jobs.operations import audit

VIEW, ADD, CHANGE = (
    "tailrace_records.view_source",
    "tailrace_records.add_source",
    "tailrace_records.change_source",
)
MOST_SOURCES = 1000
READ_FROM = ("kind", "url", "settings")
"""Fields of which a change means that the source is read anew."""
EDITABLE = (*READ_FROM, "cron", "is_active")
FROM_THE_BEGINNING: dict[str, Any] = {
    "cursor": None,
    "list_goes_on": False,
    "records_read": 0,
    "records_total": None,
    "errors_in_row": 0,
    "last_error": "",
}
"""Fields of a source that is to be read anew."""


class InvalidSource(Exception):
    """What is wrong with a source, as messages by field."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{field}: {message}" for field, message in problems.items()))
        self.problems = dict(problems)


class TooManySources(Exception):
    """There are MOST_SOURCES."""


def check_number() -> None:
    """Raise TooManySources if there may be no more."""
    if Source.objects.count() >= MOST_SOURCES:
        raise TooManySources(f"there are {MOST_SOURCES:,} sources, the maximum")


def create_source(
    by: User, *, name: str, kind: str, url: str, settings: dict[str, Any], cron: str
) -> Source:
    """Make a source that is read when its cron expression says so.

    Raises InvalidSource or TooManySources.
    """
    wrong = problems(kind, url, settings, cron)
    try:
        NAME(name)
    except ValidationError as error:
        wrong["name"] = error.messages[0]
    if wrong:
        raise InvalidSource(wrong)
    check_number()
    try:
        with transaction.atomic():
            source = Source.objects.create(
                name=name, kind=kind, url=url, settings=settings, cron=cron
            )
            sync_schedules([source])
            audit.record(by, Source, "made", [(source.pk, name)])
    except IntegrityError:
        raise InvalidSource({"name": f"there is a source {name!r} already"}) from None
    return source


def change_source(id: int, by: User, **values: Any) -> Source:
    """Give the source these values of EDITABLE. If what it gives has changed, it is read from the
    beginning; what is there already is recognised. Raises InvalidSource."""
    with transaction.atomic():
        source = Source.objects.select_for_update().get(pk=id)
        changed = [name for name in EDITABLE if getattr(source, name) != values.get(name, ...)]
        changed = [name for name in changed if name in values]
        for name in changed:
            setattr(source, name, values[name])
        if wrong := problems(source.kind, source.url, source.settings, source.cron):
            raise InvalidSource(wrong)
        if changed:
            save_changes(source, changed)
            audit.record(by, Source, f"changed {', '.join(changed)}", [(id, source.name)])
    return source


def save_changes(source: Source, changed: list[str]) -> None:
    """Store these fields alone: a pull may have moved the cursor since the row was read."""
    again = FROM_THE_BEGINNING if set(changed) & set(READ_FROM) else {}
    for name, value in again.items():
        setattr(source, name, value)
    source.save(update_fields=[*changed, *again])
    sync_schedules([source])


def set_active(id: int, by: User, is_active: bool) -> Source:
    """Let the source be read at its times, or pause it; a page that is being read is not stored."""
    with transaction.atomic():
        source = Source.objects.select_for_update().get(pk=id)
        if source.is_active != is_active:
            source.is_active = is_active
            save_changes(source, ["is_active"])
            audit.record(by, Source, "resumed" if is_active else "paused", [(id, source.name)])
    return source


def pull_now(id: int, by: User) -> int:
    """Let the source be read at once, and return the id of the event. Raises NotActive."""
    with transaction.atomic():
        event = request_pull(id, by.get_username())
        audit.record(by, Source, "pulled", [(id, str(Source.objects.get(pk=id)))])
    return event


def start_over(id: int, by: User) -> int:
    """Let the source be read from the beginning, as `pull_now`."""
    with transaction.atomic():
        Source.objects.filter(pk=id).update(**FROM_THE_BEGINNING)
        return pull_now(id, by)
