"""filters: the list filters that several admins share."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.contrib.admin import ModelAdmin, SimpleListFilter
from django.db import connection
from django.db.models import QuerySet
from django.http import HttpRequest

from events import clock
from jobs.models import Queue
from jobs.states import State

Choices = list[tuple[str, str]]


class ChoiceFilter(SimpleListFilter):
    """One of a list of choices; what is not in the list finds nothing."""

    def choice_list(self) -> Choices:
        raise NotImplementedError

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        raise NotImplementedError

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Choices:
        return self.choice_list()

    def has_output(self) -> bool:
        return True

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if not value:
            return queryset
        known = {choice for choice, _title in self.lookup_choices}
        return self.narrow(queryset, value) if value in known else queryset.none()


def column_filter(name: str, column: str, choice_list: Callable[[], Choices]) -> type[ChoiceFilter]:
    """Return a filter of `column` by equality, under the parameter `name`."""

    class ColumnFilter(ChoiceFilter):
        title = name
        parameter_name = name

        def choice_list(self) -> Choices:
            return choice_list()

        def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
            return queryset.filter(**{column: value})

    return ColumnFilter


def queue_names() -> Choices:
    return [(name, name) for name in Queue.objects.values_list("name", flat=True)]


QueueFilter = column_filter("queue", "handler", queue_names)
StateFilter = column_filter("state", "state", lambda: [(s.value, s.value) for s in State])


class LaneFilter(SimpleListFilter):
    """Jobs of one lane, by its exact name."""

    title = "lane"
    parameter_name = "lane"
    template = "jobs/admin/text_filter.html"

    def lookups(self, request: HttpRequest, model_admin: "ModelAdmin[Any]") -> Choices:
        return []

    def has_output(self) -> bool:
        return True

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if not value:
            return queryset
        return queryset.none() if "\0" in value else queryset.filter(lane=value)

    def choices(self, changelist: Any) -> Any:
        others = {k: v for k, v in changelist.params.items() if k != self.parameter_name}
        yield {"name": self.parameter_name, "value": self.value() or "", "others": others}


SPANS = {"5m": 300, "1h": 3600, "1d": 86_400, "7d": 7 * 86_400}
_MARGIN = timedelta(minutes=10)
"""Ids follow the time but for transactions that run beside each other, for less than this."""

# A search by halves along the primary key: some thirty probes, however big the table is.
_FIRST_SINCE = """
WITH RECURSIVE halves (low, high) AS (
  SELECT min(id), max(id) + 1 FROM events_event
  UNION ALL
  SELECT CASE WHEN early THEN middle + 1 ELSE low END, CASE WHEN early THEN high ELSE middle END
  FROM (SELECT low, high, (low + high) / 2 AS middle FROM halves WHERE low < high) h,
    LATERAL (SELECT coalesce((SELECT recorded_at < %s FROM events_event
      WHERE id >= middle ORDER BY id LIMIT 1), false) AS early) probe
)
SELECT low FROM halves WHERE low >= high
"""


def first_event_since(at: datetime) -> int:
    """Return an id below which no event was recorded at `at` or later."""
    with connection.cursor() as cursor:
        cursor.execute(_FIRST_SINCE, [at - _MARGIN])
        row = cursor.fetchone()
    return (row and row[0]) or 0


class RecordedFilter(ChoiceFilter):
    """Events of the last so many minutes, hours or days."""

    title = "recorded"
    parameter_name = "recorded"

    def choice_list(self) -> Choices:
        titles = ("last 5 minutes", "last hour", "last day", "last 7 days")
        return list(zip(SPANS, titles, strict=True))

    def narrow(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        since = clock.now() - timedelta(seconds=SPANS[value])
        return queryset.filter(pk__gte=first_event_since(since), recorded_at__gte=since)
