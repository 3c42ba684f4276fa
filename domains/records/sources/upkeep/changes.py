"""Add and change sources. Each change gets an entry in the admin log."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from tailrace.domains.records.models import Source
from tailrace.domains.records.models.source import NAME
from tailrace.domains.records.sources.requests import request_pull, sync_schedules
from tailrace.domains.records.sources.upkeep.checks import problems
from tailrace.jobs.runtime import audit

VIEW = "tailrace_records.view_source"
ADD = "tailrace_records.add_source"
CHANGE = "tailrace_records.change_source"
MOST_SOURCES = 1000
READ_FROM = ("kind", "url", "settings")
"""Fields whose change requires that the source is read from the beginning."""
EDITABLE = (*READ_FROM, "cron", "is_active")
FROM_THE_BEGINNING: dict[str, Any] = {
    "cursor": None,
    "list_goes_on": False,
    "records_read": 0,
    "records_total": None,
    "errors_in_row": 0,
    "last_error": "",
}
"""Values of the fields of a source that is to be read from the beginning."""


class InvalidSource(Exception):
    """A source is invalid. `problems` has a message for each invalid field."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{field}: {message}" for field, message in problems.items()))
        self.problems = dict(problems)


class TooManySources(Exception):
    """The number of sources has reached MOST_SOURCES."""


def check_number() -> None:
    """Raise TooManySources if no source can be added."""
    if Source.objects.count() >= MOST_SOURCES:
        raise TooManySources(f"there are {MOST_SOURCES:,} sources, the maximum")


def create_source(
    by: User, *, name: str, kind: str, url: str, settings: dict[str, Any], cron: str
) -> Source:
    """Create a source with a schedule. Raises InvalidSource or TooManySources."""
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
        raise InvalidSource({"name": f"a source named {name!r} already exists"}) from None
    return source


def change_source(id: int, by: User, **values: Any) -> Source:
    """Change fields of the source, whose names are in EDITABLE. Raises InvalidSource.

    If a field in READ_FROM changes, the source will be read from the beginning.
    """
    with transaction.atomic():
        source = Source.objects.select_for_update().get(pk=id)
        editable = [name for name in EDITABLE if name in values]
        changed = [name for name in editable if getattr(source, name) != values[name]]
        for name in changed:
            setattr(source, name, values[name])
        if wrong := problems(source.kind, source.url, source.settings, source.cron):
            raise InvalidSource(wrong)
        if changed:
            save_changes(source, changed)
            audit.record(by, Source, f"changed {', '.join(changed)}", [(id, source.name)])
    return source


def save_changes(source: Source, changed: list[str]) -> None:
    """Save only these fields: a pull may have moved the cursor since the row was read."""
    reset = FROM_THE_BEGINNING if set(changed) & set(READ_FROM) else {}
    for name, value in reset.items():
        setattr(source, name, value)
    source.save(update_fields=[*changed, *reset])
    sync_schedules([source])


def set_active(id: int, by: User, is_active: bool) -> Source:
    """Resume or pause the source. A page that is being read is not stored."""
    with transaction.atomic():
        source = Source.objects.select_for_update().get(pk=id)
        if source.is_active != is_active:
            source.is_active = is_active
            save_changes(source, ["is_active"])
            audit.record(by, Source, "resumed" if is_active else "paused", [(id, source.name)])
    return source


def pull_now(id: int, by: User) -> int:
    """Request a pull of the source now; return the id of the event. Raises NotActive."""
    with transaction.atomic():
        event = request_pull(id, by.get_username())
        audit.record(by, Source, "pulled", [(id, str(Source.objects.get(pk=id)))])
    return event


def start_over(id: int, by: User) -> int:
    """Request a pull from the beginning; return the id of the event. Raises NotActive."""
    with transaction.atomic():
        Source.objects.filter(pk=id).update(**FROM_THE_BEGINNING)
        return pull_now(id, by)
