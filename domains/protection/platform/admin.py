"""The admin of protection: states and counts. Watched values are masked or hidden."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from unfold.decorators import display

from tailrace.domains.protection.alerts.texts import severity_words
from tailrace.domains.protection.models import (
    Alert,
    Borough,
    Breach,
    Exposure,
    PropertyChange,
    Recording,
    Report,
    Severity,
    WatchedProperty,
    WatchlistItem,
)
from tailrace.domains.protection.services.removals import admin as removals_admin  # noqa: F401
from tailrace.jobs.platform.admin import rendering
from tailrace.jobs.platform.admin.base import ModelAdmin
from tailrace.jobs.platform.admin.lists import filters
from tailrace.jobs.platform.admin.lists.pagination import KeysetAdmin, ReadOnlyAdmin

VIEW_ITEM = "tailrace_protection.view_watchlistitem"
HIDDEN = f"You need the permission {VIEW_ITEM} to see the value."
SEVERITY_COLOURS = {"info": "info", "warning": "warning", "critical": "danger"}


def _severities() -> list[tuple[str, str]]:
    return [(str(value), label) for value, label in Severity.choices]


SeverityFilter = filters.column_filter("severity", _severities)
ExposureState = filters.column_filter("state", lambda: Exposure.State.choices)


def _fields(*lines: str | tuple[str, ...]) -> Any:
    """Return fieldsets with one group: a field, or several fields, per line."""
    return ((None, {"fields": lines}),)


class ListAdmin(filters.SearchById, ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    """Base of the lists: they are read-only, and no index serves their filters."""

    list_select_related: tuple[str, ...] = ("user",)
    created = rendering.time_column("created_at")

    def scans(self, params: dict[str, str]) -> bool:
        return bool({"severity", "state"} & params.keys())

    level = rendering.column(
        "severity", lambda row: severity_words(row.severity), label=SEVERITY_COLOURS
    )


@admin.register(Alert)
class AlertAdmin(ListAdmin):
    list_display = ("id", "user", "kind", "source", "level", "raised", "announced")
    list_filter = (SeverityFilter,)
    raised, announced = rendering.time_column("raised_at"), rendering.time_column("announced_at")
    next_notice = rendering.time_column("notice_at", "next notice")
    fieldsets = _fields(
        ("user", "level"), ("kind", "source"), ("raised", "announced"), "next_notice"
    )


@admin.register(WatchlistItem)
class WatchlistItemAdmin(ListAdmin):
    list_display = ("id", "user", "kind", "masked", "active", "created")
    fieldsets = _fields(("user", "active"), ("kind", "masked"), "created")


@admin.register(Exposure)
class ExposureAdmin(ListAdmin):
    list_display = ("id", "user", "value", "breach", "level", "state", "first", "moved")
    list_select_related = ("user", "item", "breach")
    list_filter = (ExposureState, SeverityFilter)
    first, moved = rendering.time_column("first_at"), rendering.time_column("moved_at")
    announced = rendering.time_column("announced_at")
    fieldsets = _fields(
        ("user", "value"), ("breach", "level"), "state", ("first", "moved"), "announced"
    )

    def complete(self, request: HttpRequest, rows: list[Any]) -> None:
        """Note on each row whether the user may see the watched value."""
        for row in rows:
            row.may_see_item = request.user.has_perm(VIEW_ITEM)

    def complete_page(self, request: HttpRequest, row: Any) -> None:
        self.complete(request, [row])

    value = rendering.column(
        "value", lambda row: f"{row.item.kind} {row.item.masked}" if row.may_see_item else HIDDEN
    )


@admin.register(Breach)
class BreachAdmin(ListAdmin):
    list_display = ("id", "source", "name", "title", "domain", "breached_on", "accounts", "added")
    list_select_related = ()
    added, modified = rendering.time_column("added_at"), rendering.time_column("modified_at")
    fieldsets = (
        (None, {"fields": (("source", "name"), ("title", "domain"), ("breached_on", "accounts"))}),
        ("Lost data", {"fields": ("data_classes", "description", ("added", "modified"))}),
    )


@admin.register(Report)
class ReportAdmin(ListAdmin):
    list_display = ("id", "user", "first_day", "last_day", "size", "is_cut", "generated")
    list_select_related = ("user", "file")
    generated = rendering.time_column("generated_at")
    fieldsets = _fields(
        ("user", "size"), ("first_day", "last_day", "time_zone"), ("generated", "is_cut")
    )

    size = rendering.column("size", lambda row: filesizeformat(row.file.size))


@admin.register(WatchedProperty)
class WatchedPropertyAdmin(ListAdmin):
    """The properties that accounts watch, and when they were scanned. Addresses are not shown."""

    list_display = ("id", "user", "source", "area", "place", "scanned", "concerned", "created")
    scanned = rendering.time_column("scanned_at")
    concerned = rendering.time_column("concerned_at", "named by a feed")
    fieldsets = (
        (None, {"fields": (("user", "source"), ("area", "place"), ("documents", "records"))}),
        ("Scans", {"fields": (("scanned", "scanned_by"), ("concerned", "created"))}),
    )

    area = rendering.column("borough", lambda row: str(Borough(row.borough).label))
    place = rendering.column("watched by", lambda row: "address" if row.block is None else "lot")

    @display(description="documents")
    def documents(self, row: WatchedProperty) -> str:
        snapshot = getattr(row, "snapshot", None)
        if snapshot is None:
            return "–"
        return f"{len(snapshot.documents):,}{'' if snapshot.complete else ' (the newest)'}"

    @display(description="records complete until")
    def records(self, row: WatchedProperty) -> str:
        snapshot = getattr(row, "snapshot", None)
        return (snapshot.watermark[:10] if snapshot else "") or "–"


@admin.register(PropertyChange)
class PropertyChangeAdmin(ListAdmin):
    list_display = ("id", "property", "kind", "level", "document_id", "noticed")
    list_select_related = ("property",)
    list_filter = (SeverityFilter,)
    noticed = rendering.time_column("noticed_at")
    fieldsets = _fields(("property", "noticed"), ("kind", "level"), "document_id")


@admin.register(Recording)
class RecordingAdmin(ListAdmin):
    list_display = ("id", "user", "status", "likeness", "made_by", "created", "compared")
    compared = rendering.time_column("compared_at")
    fieldsets = _fields(
        ("user", "status"), ("likeness", "made_by"), "reason", ("created", "compared")
    )

    status = rendering.column(
        "state", lambda row: str(row.state), label={"broken": "danger", "matched": "success"}
    )
    likeness = rendering.column(
        "score", lambda row: "–" if row.score is None else f"{row.score:.3f}"
    )
    made_by = rendering.column(
        "model", lambda row: f"{row.model_name} {row.model_version}".strip() or "–"
    )
