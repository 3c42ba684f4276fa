"""The admin of the build service: what we know of projects, what was released, who watches."""

from typing import Any

from django.contrib import admin
from unfold.admin import ModelAdmin
from unfold.decorators import display

from domains.builds.models import (
    Binary,
    Package,
    PackageLink,
    Project,
    ProjectLogEntry,
    RoleHolder,
    TokenHolder,
    Watch,
)
from jobs.admin import cells
from jobs.admin.paging import KeysetAdmin, ReadOnlyAdmin


class _Told(ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    """Rows that events and backends tell of: read, and never written by hand."""

    def scans(self, params: dict[str, str]) -> bool:
        return "q" in params


@admin.register(Project)
class ProjectAdmin(_Told):
    list_display = ("name", "backend", "title", "exists", "refreshed")
    search_fields = ("name__exact",)
    refreshed = cells.time_of("refreshed_at")


@admin.register(Package)
class PackageAdmin(_Told):
    list_display = ("__str__", "backend", "rev", "srcmd5", "error", "gone", "refreshed")
    search_fields = ("name__exact", "project__exact")
    refreshed = cells.time_of("refreshed_at")
    gone = cells.time_of("gone_at")


@admin.register(PackageLink)
class PackageLinkAdmin(_Told):
    list_display = ("__str__",)
    list_select_related = ("package",)
    search_fields = ("project__exact", "name__exact")

    def scans(self, params: dict[str, str]) -> bool:
        return False


@admin.register(RoleHolder)
class RoleHolderAdmin(_Told):
    list_display = ("__str__", "backend", "role", "user", "group")
    search_fields = ("project__exact", "user__exact", "group__exact")


@admin.register(Binary)
class BinaryAdmin(_Told):
    list_display = ("__str__", "project", "repository", "operation", "released", "until")
    search_fields = ("project__exact", "name__exact")
    released = cells.time_of("released_at")

    @display(description="until")
    def until(self, binary: Binary) -> str:
        return cells.at(binary.modified_at or binary.obsolete_at)


@admin.register(ProjectLogEntry)
class ProjectLogEntryAdmin(_Told):
    list_display = ("happened", "project", "package", "type", "user", "request", "of")
    search_fields = ("project__exact",)
    happened = cells.time_of("occurred_at", "happened")

    def scans(self, params: dict[str, str]) -> bool:
        return False

    @display(description="event")
    def of(self, entry: ProjectLogEntry) -> str:
        return cells.link("events_event_change", entry.event_id, entry.event_id)


@admin.register(Watch)
class WatchAdmin(ModelAdmin):
    list_display = ("user", "project", "package", "request")
    list_select_related = ("user",)
    autocomplete_fields = ("user",)
    search_fields = ("user__username__exact", "project__exact")
    show_full_result_count = False


@admin.register(TokenHolder)
class TokenHolderAdmin(ModelAdmin):
    list_display: Any = ("token", "role", "user", "group")
    search_fields = ("user__exact",)
    show_full_result_count = False
