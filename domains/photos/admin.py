"""The admin of photos and gatherings: what became of each, and another try for who is alone."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.views.decorators.http import require_POST
from unfold.admin import ModelAdmin
from unfold.decorators import action, display

from domains.photos.models import Gathering, Photo
from domains.photos.requeue import MOST, PERMISSION, requeue
from jobs.admin import cells, filters
from jobs.admin.paging import KeysetAdmin, ReadOnlyAdmin

PhotoState = filters.column_filter(
    "state", "state", lambda: [(each.value, str(each.label)) for each in Photo.State]
)
GatheringState = filters.column_filter(
    "state", "state", lambda: [(each.value, str(each.label)) for each in Gathering.State]
)
INDEXED = (Photo.State.NEW, Photo.State.UNCLUSTERABLE)
"""States whose photos are few and have an index of their own."""


class _ById(ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    search_fields = ("id",)
    search_help_text = "id"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        term = search_term.strip()
        if not term:
            return queryset, False
        number = term.isascii() and term.isdigit()
        return (queryset.filter(pk=int(term)) if number else queryset.none()), False


@admin.register(Photo)
class PhotoAdmin(_ById):
    list_display = ("id", "user", "status", "tries", "why", "of", "taken", "uploaded")
    list_select_related = ("user",)
    list_filter = (PhotoState,)
    actions = ("requeue_photos",)
    change_form_outer_before_template = "jobs/admin/job_buttons.html"
    fieldsets = (
        (None, {"fields": (("status", "tries"), ("of", "next_try"), "reason")}),
        ("Picture", {"fields": (("user", "caption"), "storage_key")}),
        ("Place and time", {"fields": (("lat", "lon"), ("taken", "uploaded"))}),
        ("Lookback", {"fields": (("opened", "given_up"),)}),
    )
    taken, uploaded = cells.time_of("taken_at"), cells.time_of("uploaded_at")
    opened, given_up = cells.time_of("opened_at"), cells.time_of("given_up_at")
    next_try = cells.time_of("next_try_at", "next try")

    def scans(self, params: dict[str, str]) -> bool:
        return "state" in params and params["state"] not in INDEXED

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return cells.names(self.fieldsets)

    @display(
        description="state",
        label={"new": "info", "clustered": "success", "unclusterable": "warning"},
    )
    def status(self, photo: Photo) -> str:
        return photo.state

    @display(description="tries")
    def tries(self, photo: Photo) -> int:
        return photo.cluster_attempts

    @display(description="reason")
    def why(self, photo: Photo) -> str:
        return cells.cut(photo.reason) or "–"

    @display(description="gathering")
    def of(self, photo: Photo) -> str:
        if photo.gathering_id is None:
            return "–"
        return cells.link("photos_gathering_change", photo.gathering_id, photo.gathering_id)

    # Requeue

    def has_requeue_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(PERMISSION)

    @action(description="Requeue: try again", permissions=["requeue"])
    def requeue_photos(self, request: HttpRequest, queryset: QuerySet[Photo]) -> None:
        state = Photo.State.UNCLUSTERABLE
        across = request.POST.get("select_across") == "1"
        if across and request.GET.get("state") != state:
            messages.warning(
                request, "To choose all matching photos, first filter by unclusterable."
            )
            return
        chosen = queryset.filter(state=state).order_by("-pk").values_list("pk", flat=True)
        self._requeue(request, list(chosen[:MOST]))

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(require_POST(self.requeue_view))
        own = path("<int:id>/requeue/", view, name="photos_photo_requeue")
        return [own, *super().get_urls()]

    def requeue_view(self, request: HttpRequest, id: int) -> HttpResponse:
        if not self.has_requeue_permission(request):
            raise PermissionDenied(f"this takes the permission {PERMISSION}")
        self._requeue(request, [id])
        return redirect("admin:photos_photo_change", id)

    def _requeue(self, request: HttpRequest, ids: list[int]) -> None:
        done = len(requeue(ids, by=request.user))
        if done:
            messages.success(request, f"{done} photo{'' if done == 1 else 's'} requeued.")
        else:
            messages.warning(request, "Nothing was requeued: only what is unclusterable is.")

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        found = Photo.objects.filter(pk=object_id) if object_id.isdecimal() else None
        buttons = []
        if found and self.has_requeue_permission(request) and found.unclusterable().exists():
            address = reverse("admin:photos_photo_requeue", args=[object_id])
            buttons = [({"title": "Requeue: try again"}, address)]
        context = {"buttons": buttons, **(extra_context or {})}
        return super().change_view(request, object_id, form_url, context)


@admin.register(Gathering)
class GatheringAdmin(_ById):
    list_display = ("id", "status", "photo_count", "lat", "lon", "metres", "first", "last")
    list_filter = (GatheringState,)
    fields = (
        ("status", "photo_count"),
        ("lat", "lon", "metres"),
        ("first", "last"),
        ("joined", "finalized"),
    )
    first, last = cells.time_of("first_photo_at"), cells.time_of("last_photo_at")
    joined, finalized = cells.time_of("joined_at"), cells.time_of("finalized_at")

    def scans(self, params: dict[str, str]) -> bool:
        return params.get("state") == Gathering.State.FINALIZED

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return cells.names([(None, {"fields": self.fields})])

    @display(description="state", label={"ACTIVE": "info", "FINALIZED": "success"})
    def status(self, row: Gathering) -> str:
        return row.state

    @display(description="radius, m")
    def metres(self, row: Gathering) -> str:
        return f"{row.radius:.1f}"
