"""The admin of photos and gatherings, with a button that requeues unclusterable photos."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST
from unfold.decorators import action, display

from tailrace.db.row_ids import row_id
from tailrace.domains.photos.clustering.sweeping.unassigned import (
    MAX_REQUEUED,
    REQUEUE_PERMISSION,
    requeue,
)
from tailrace.domains.photos.models import Gathering, Photo
from tailrace.domains.photos.models.visibility import VIEW_ALL
from tailrace.domains.photos.pages.templatetags.tailrace_photo_format import shown_coordinates
from tailrace.jobs.platform.admin import rendering
from tailrace.jobs.platform.admin.base import ModelAdmin
from tailrace.jobs.platform.admin.lists import filters
from tailrace.jobs.platform.admin.lists.pagination import KeysetAdmin, ReadOnlyAdmin
from tailrace.jobs.platform.admin.lists.several import filter_in_words, is_across

PhotoState = filters.column_filter("state", lambda: Photo.State.choices)
GatheringState = filters.column_filter("state", lambda: Gathering.State.choices)
INDEXED_STATES = (Photo.State.NEW, Photo.State.UNCLUSTERABLE)
"""States with few photos and a partial index."""
STATE_COLOURS = {
    "unplaced": "default", "new": "info", "clustered": "success", "unclusterable": "warning",
}  # fmt: skip


@admin.register(Photo)
class PhotoAdmin(filters.SearchById, ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    list_display = "id user status tries cut_reason in_gathering taken uploaded".split()
    list_select_related = ("user",)
    list_filter = (PhotoState,)
    actions = ("requeue_photos",)
    change_form_outer_before_template = "tailrace/jobs/admin/job/buttons.html"
    fieldsets = (
        (None, {"fields": (("status", "tries"), ("in_gathering", "next_try"), "reason")}),
        ("Picture", {"fields": (("user", "caption"), "storage_key")}),
        ("Location and time", {"fields": (("lat", "lon"), ("taken", "uploaded"), "placed")}),
        ("Lookback", {"fields": (("opened", "given_up"),)}),
    )
    taken, uploaded = rendering.time_column("taken_at"), rendering.time_column("uploaded_at")
    placed = rendering.time_column("placed_at", "location from the timeline")
    opened, given_up = rendering.time_column("opened_at"), rendering.time_column("given_up_at")
    next_try = rendering.time_column("next_try_at", "next try")

    def scans(self, params: dict[str, str]) -> bool:
        return "state" in params and params["state"] not in INDEXED_STATES

    status = rendering.column("state", lambda photo: photo.state, label=STATE_COLOURS)
    tries = rendering.column("tries", lambda photo: photo.cluster_attempts)
    cut_reason = rendering.column("reason", lambda photo: rendering.truncated(photo.reason) or "–")

    @display(description="gathering")
    def in_gathering(self, photo: Photo) -> str:
        id = photo.gathering_id
        return "–" if id is None else rendering.link("tailrace_photos_gathering_change", id, id)

    # Requeue

    def has_requeue_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(REQUEUE_PERMISSION)

    @action(description="Requeue: try again", permissions=["requeue"])
    def requeue_photos(self, request: HttpRequest, queryset: QuerySet[Photo]) -> None:
        state = Photo.State.UNCLUSTERABLE
        if is_across(request) and request.GET.get("state") != state:
            text = "To select all matching photos, first filter by the state unclusterable."
            messages.warning(request, text)
            return
        selected = queryset.filter(state=state).order_by("-pk").values_list("pk", flat=True)
        self._requeue(request, list(selected[:MAX_REQUEUED]))

    def get_urls(self) -> list[Any]:
        requeue = self.route("<int:id>/requeue/", require_POST(self.requeue_view), "requeue")
        return [requeue, *super().get_urls()]

    def requeue_view(self, request: HttpRequest, id: int) -> HttpResponse:
        if not self.has_requeue_permission(request):
            raise PermissionDenied(f"Requeuing photos needs the permission {REQUEUE_PERMISSION}.")
        self._requeue(request, [id])
        return redirect(self.address("change", id))

    def _requeue(self, request: HttpRequest, ids: list[int]) -> None:
        count = len(requeue(ids, by=request.user, chosen_by=filter_in_words(request)))
        if count:
            messages.success(request, f"{count} photo{'' if count == 1 else 's'} requeued.")
        else:
            text = "No photo was requeued: only unclusterable photos can be requeued."
            messages.warning(request, text)

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        id = row_id(object_id)
        photo = None if id is None else Photo.objects.filter(pk=id)
        if not (photo and self.has_requeue_permission(request) and photo.unclusterable().exists()):
            return {}
        address = self.address("requeue", object_id)
        return {"buttons": [({"title": "Requeue: try again"}, address)]}


@admin.register(Gathering)
class GatheringAdmin(filters.SearchById, ReadOnlyAdmin, KeysetAdmin, ModelAdmin):
    list_display = ("id", "status", "photo_count", "place", "radius_shown", "first", "last")
    list_filter = (GatheringState,)
    first, last = rendering.time_column("first_photo_at"), rendering.time_column("last_photo_at")
    joined, finalized = rendering.time_column("joined_at"), rendering.time_column("finalized_at")

    def scans(self, params: dict[str, str]) -> bool:
        return params.get("state") == Gathering.State.FINALIZED

    status = rendering.column(
        "state", lambda row: row.state, label={"ACTIVE": "info", "FINALIZED": "success"}
    )

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Show the exact centroid only to users with the permission VIEW_ALL."""
        exact = [("lat", "lon", "metres")] if request.user.has_perm(VIEW_ALL) else []
        return [
            ("status", "photo_count"),
            ("place", "radius_shown"),
            *exact,
            ("first", "last"),
            ("joined", "finalized"),
        ]

    place = rendering.column("shown location", shown_coordinates)
    radius_shown = rendering.column(
        "shown radius, m",
        lambda row: "–" if row.shown_radius is None else f"{row.shown_radius:.0f}",
    )
    metres = rendering.column("radius, m", lambda row: f"{row.radius:.1f}")
