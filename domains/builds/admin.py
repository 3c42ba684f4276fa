"""The admin pages of builds."""

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
from jobs.admin import rendering
from jobs.admin.pagination import KeysetAdmin, ReadOnlyAdmin


class ReadOnlyKeysetAdmin(ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    """Read-only rows whose search is not served by an index."""

    def scans(self, params: dict[str, str]) -> bool:
        return "q" in params


@admin.register(Project)
class ProjectAdmin(ReadOnlyKeysetAdmin):
    list_display = ("name", "backend", "title", "exists", "refreshed")
    search_fields = ("name__exact",)
    refreshed = rendering.time_column("refreshed_at")


@admin.register(Package)
class PackageAdmin(ReadOnlyKeysetAdmin):
    list_display = ("__str__", "backend", "rev", "srcmd5", "error", "gone", "refreshed")
    search_fields = ("name__exact", "project__exact")
    refreshed = rendering.time_column("refreshed_at")
    gone = rendering.time_column("gone_at")


@admin.register(PackageLink)
class PackageLinkAdmin(ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    list_display = ("__str__",)
    list_select_related = ("package",)
    search_fields = ("project__exact", "name__exact")


@admin.register(RoleHolder)
class RoleHolderAdmin(ReadOnlyKeysetAdmin):
    list_display = ("__str__", "backend", "role", "user", "group")
    search_fields = ("project__exact", "user__exact", "group__exact")


@admin.register(Binary)
class BinaryAdmin(ReadOnlyKeysetAdmin):
    list_display = ("__str__", "project", "repository", "operation", "released", "until")
    search_fields = ("project__exact", "name__exact")
    released = rendering.time_column("released_at")

    @display(description="until")
    def until(self, binary: Binary) -> str:
        return rendering.utc_time(binary.modified_at or binary.obsolete_at)


@admin.register(ProjectLogEntry)
class ProjectLogEntryAdmin(ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    list_display = ("happened", "project", "package", "type", "user", "request", "of")
    search_fields = ("project__exact",)
    happened = rendering.time_column("occurred_at", "happened")

    @display(description="event")
    def of(self, entry: ProjectLogEntry) -> str:
        return rendering.link("events_event_change", entry.event_id, entry.event_id)


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
