"""The admin pages of builds."""

from collections.abc import Sequence
from typing import Any, ClassVar, cast

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.decorators import display

from tailrace.domains.builds.audience.visibility import readable_rows
from tailrace.domains.builds.models import (
    Binary,
    Package,
    PackageLink,
    Project,
    ProjectLogEntry,
    RoleHolder,
    TokenHolder,
    UnreadChange,
    Watch,
)
from tailrace.events.privacy.visibility import hidden_from
from tailrace.jobs.platform.admin import rendering
from tailrace.jobs.platform.admin.base import ModelAdmin
from tailrace.jobs.platform.admin.lists.pagination import KeysetAdmin, ReadOnlyAdmin
from tailrace.jobs.platform.inspection.visibility import VIEW_EVENT_PAYLOAD, user_of


class HiddenProjectsMixin:
    """Leave out the rows of projects that the user may not read."""

    project_columns: ClassVar[Sequence[tuple[str, str | None]]] = (("project", "backend"),)
    """Pairs of the columns that name a project and its backend; None if there is no backend."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = super().get_queryset(request)  # type: ignore[misc]
        for project, backend in self.project_columns:
            rows = readable_rows(rows, user_of(request), project, backend)
        return cast(QuerySet[Any], rows)


class ReadOnlyKeysetAdmin(HiddenProjectsMixin, ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    """Read-only rows without an index for their search."""

    def scans(self, params: dict[str, str]) -> bool:
        return "q" in params


@admin.register(Project)
class ProjectAdmin(ReadOnlyKeysetAdmin):
    project_columns = (("name", "backend"),)
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
class PackageLinkAdmin(HiddenProjectsMixin, ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    project_columns = (("project", "package__backend"), ("package__project", "package__backend"))
    list_display = ("__str__",)
    list_select_related = ("package",)
    search_fields = ("project__exact", "name__exact")


@admin.register(RoleHolder)
class RoleHolderAdmin(ReadOnlyKeysetAdmin):
    list_display = ("__str__", "backend", "role", "user", "group")
    search_fields = ("project__exact", "user__exact", "group__exact")


@admin.register(UnreadChange)
class UnreadChangeAdmin(ReadOnlyKeysetAdmin):
    list_display = ("__str__", "backend", "project", "package", "reported")
    search_fields = ("project__exact", "package__exact")
    reported = rendering.time_column("recorded_at", "reported")


@admin.register(Binary)
class BinaryAdmin(ReadOnlyKeysetAdmin):
    project_columns = (("project", "backend"), ("source_project", "backend"))
    list_display = ("__str__", "project", "repository", "operation", "released", "until")
    search_fields = ("project__exact", "name__exact")
    released = rendering.time_column("released_at")

    @display(description="until")
    def until(self, binary: Binary) -> str:
        return rendering.timestamp(binary.modified_at or binary.obsolete_at)


@admin.register(ProjectLogEntry)
class ProjectLogEntryAdmin(HiddenProjectsMixin, ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    list_display = ("happened", "project", "package", "type", "user", "request", "event_link")
    search_fields = ("project__exact",)
    happened = rendering.time_column("occurred_at", "happened")

    def get_exclude(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """Leave out the details for users without permission to read payloads of events."""
        return [] if request.user.has_perm(VIEW_EVENT_PAYLOAD) else ["details"]

    def listed(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """Leave out entries whose event is hidden from the user: it may name another project."""
        hidden = hidden_from(user_of(request), (row.event_id for row in rows))
        return [row for row in rows if row.event_id not in hidden]

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        entry = super().get_object(request, object_id, from_field)
        return entry if entry and self.listed(request, [entry]) else None

    @display(description="event")
    def event_link(self, entry: ProjectLogEntry) -> str:
        return rendering.link("tailrace_events_event_change", entry.event_id, entry.event_id)


@admin.register(Watch)
class WatchAdmin(HiddenProjectsMixin, ModelAdmin):
    project_columns = (("project", None),)
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
