"""List filters and the search that several admins share."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, ClassVar

from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest

from tailrace.db import clock
from tailrace.db.row_ids import MARGIN, first_id_since, row_id
from tailrace.jobs.models import Queue
from tailrace.jobs.platform.inspection.display.formatting import STATE_LABELS
from tailrace.jobs.platform.inspection.search.terms import time_of
from tailrace.jobs.runtime.states import State

Choices = list[tuple[str, str]]


class ChoiceFilter(SimpleListFilter):
    """A filter by one of several choices; any other value matches no rows."""

    options: ClassVar[Choices] = []

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        raise NotImplementedError

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Choices:
        return self.options

    def has_output(self) -> bool:
        return True

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not (value := self.value()):
            return queryset
        known = {choice for choice, _title in self.lookup_choices}
        return self.narrow(queryset, value) if value in known else queryset.none()


def column_filter(
    column: str, choices: Callable[[], Choices], parameter: str = ""
) -> type[ChoiceFilter]:
    """Return a filter of `column` by equality; the query parameter is `parameter`, or `column`."""

    class ColumnFilter(ChoiceFilter):
        title = parameter_name = parameter or column

        def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Choices:
            return choices()

        def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
            return queryset.filter(**{column: value})

    return ColumnFilter


def queue_names() -> Choices:
    return [(name, name) for name in Queue.objects.values_list("name", flat=True)]


QueueFilter = column_filter("handler", queue_names, "queue")
StateFilter = column_filter("state", lambda: list(STATE_LABELS.items()))


class LaneFilter(ChoiceFilter):
    title = parameter_name = "lane"
    template = "tailrace/jobs/admin/lists/text_filter.html"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not (value := self.value()):
            return queryset
        return queryset.none() if "\0" in value else queryset.filter(lane=value)

    def choices(self, changelist: Any) -> Any:
        others = {k: v for k, v in changelist.params.items() if k != self.parameter_name}
        yield {"name": self.parameter_name, "value": self.value() or "", "others": others}


class IdFilter(ChoiceFilter):
    """Filter jobs by the id of a row that they belong to; used by links from other pages."""

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Choices:
        value = self.value()
        return [(value, f"{self.title} {value}")] if value else []

    def has_output(self) -> bool:
        return bool(self.value())

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if not (value := self.value()):
            return queryset
        return queryset.none() if row_id(value) is None else self.narrow(queryset, value)


class EventFilter(IdFilter):
    title = parameter_name = "event"

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        return queryset.filter(event=int(value))


class FlowFilter(IdFilter):
    title = parameter_name = "flow"

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        return queryset.filter(flow_id=int(value))


class FailureFilter(IdFilter):
    title = parameter_name = "failure"

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        return queryset.filter(failure_group=int(value), state=State.FAILED)


def first_event_since(at: datetime) -> int:
    """Return an id below which no event was recorded at `at` or later."""
    return first_id_since("tailrace_events_event", "recorded_at", at - MARGIN)


class RecordedFilter(ChoiceFilter):
    title = parameter_name = "recorded"
    options = [("5m", "last 5 minutes"), ("1h", "last hour"), ("1d", "last day")]
    options += [("7d", "last 7 days")]

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        since = time_of(value) or clock.now()
        return queryset.filter(pk__gte=first_event_since(since), recorded_at__gte=since)


class CreatedFilter(ChoiceFilter):
    """Filter jobs by the age of their rows."""

    title = parameter_name = "created"
    options = RecordedFilter.options

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        since = time_of(value) or clock.now()
        first = first_id_since("tailrace_jobs_job", "created_at", since - MARGIN)
        return queryset.filter(pk__gte=first, created_at__gte=since)


class SearchById:
    """Mix into a ModelAdmin to search for rows only by id."""

    search_fields = ("id",)
    search_help_text = "id"

    def find(self, request: HttpRequest, queryset: QuerySet[Any], term: str) -> QuerySet[Any]:
        id = row_id(term)
        return queryset.none() if id is None else queryset.filter(pk=id)
